#include "golden.hpp"
#include "service/http/query.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tinkxx::service {
namespace {

using boost::json::value_to;

QueryValue query_value(boost::json::value const& value) {
    switch (value.kind()) {
        case boost::json::kind::null:
            return nullptr;
        case boost::json::kind::bool_:
            return value.get_bool();
        case boost::json::kind::int64:
            return value.get_int64();
        case boost::json::kind::uint64:
            return value.get_uint64();
        case boost::json::kind::double_:
            return value.get_double();
        case boost::json::kind::string:
            return value_to<std::string>(value);
        case boost::json::kind::array: {
            QueryValue::List list;
            for (auto const& item : value.get_array()) list.push_back(query_value(item));
            return list;
        }
        case boost::json::kind::object:
            break;
    }
    QueryValue::Parts parts;
    for (auto const& part : value.get_object()) {
        parts.emplace_back(part.key(), query_value(part.value()));
    }
    return parts;
}

std::vector<std::string> sorted_parts(std::string const& text) {
    std::vector<std::string> parts;
    std::istringstream in{text};
    for (std::string part; std::getline(in, part, '&');) parts.push_back(part);
    std::ranges::sort(parts);
    return parts;
}

TEST(GoldenQuery, TextIsThatOfTheOfficialSdk) {  // R-EXT-90, R-WIRE-02
    int checked = 0;
    for (auto const& vector : golden::newest_vectors("query_string")) {
        Query query;
        for (auto const& parameter : vector.at("params").as_object()) {
            query.emplace_back(parameter.key(), query_value(parameter.value()));
        }
        // The recording sorted the parameters, so their order is not compared.
        EXPECT_EQ(sorted_parts(query_string(query)),
                  sorted_parts(value_to<std::string>(vector.at("text"))))
            << vector;
        ++checked;
    }
    EXPECT_GT(checked, 10);
}

}  // namespace
}  // namespace tinkxx::service
