#include "local/training/step_name.hpp"

#include "wire/json/json_scan.hpp"

#include <protozero/pbf_reader.hpp>

#include <charconv>
#include <limits>

namespace tinkxx::local {

StepName name_of_step(std::string_view body, bool protobuf) {
    StepName out;
    if (protobuf) {
        try {
            protozero::pbf_reader in{body.data(), body.size()};
            while (in.next()) {
                if (in.tag() == 1 && in.has_wire_type(protozero::pbf_wire_type::length_delimited)) {
                    out.model_id = in.get_string();
                } else if (in.tag() == 2 && in.has_wire_type(protozero::pbf_wire_type::varint)) {
                    auto const number = in.get_int64();
                    if (number >= 0 && number <= std::numeric_limits<std::int32_t>::max()) {
                        out.seq_id = number;
                    }
                } else {
                    in.skip();
                }
            }
        } catch (protozero::exception const&) {
            // What came before counts.
        }
        return out;
    }
    wire::JsonScan scan{body};
    while (auto member = scan.next()) {
        auto const value = member->value;
        if (member->name == "model_id" && value.size() > 2) {
            out.model_id = value.substr(1, value.size() - 2);
        } else if (member->name == "seq_id") {
            std::int64_t number = 0;
            auto const read = std::from_chars(value.data(), value.data() + value.size(), number);
            if (read.ec == std::errc{}) out.seq_id = number;
        }
    }
    return out;
}

}  // namespace tinkxx::local
