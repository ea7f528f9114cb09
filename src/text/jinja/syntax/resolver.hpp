#pragma once

#include "text/jinja/program/program.hpp"

namespace tinkxx::text::jinja {

/// Finds out which variable each name of a parsed template means, as Jinja's compiler does, and
/// joins texts that follow each other. Throws `Failure`.
void resolve(Program& program);

}  // namespace tinkxx::text::jinja
