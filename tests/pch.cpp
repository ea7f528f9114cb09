// The object library that owns the precompiled header has to have a source file.
#include "pch.hpp"
