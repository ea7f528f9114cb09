// Asio is compiled here, once; everyone else sees declarations only.
#include <boost/asio/impl/src.hpp>
