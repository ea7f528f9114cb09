#pragma once

#include <tinkxx/types/timestamp.hpp>

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::cli {

/// Writes JSON with an indentation of two, as it comes: a list of any length takes no memory.
///
///     JsonWriter json{out};
///     json.begin_object();
///     json.member("total", 2);
///     json.begin_list("runs");
///     json.value("a");
///     json.end_list();
///     json.end_object();       // and a newline
class JsonWriter {
public:
    explicit JsonWriter(std::ostream& out) : out_{out} {}

    void begin_object() { begin('{'); }
    void begin_object(std::string_view name) { key(name), open('{'); }
    void end_object() { end('}'); }
    void begin_list() { begin('['); }
    void begin_list(std::string_view name) { key(name), open('['); }
    void end_list() { end(']'); }

    template <class T>
    void member(std::string_view name, T const& what) {
        key(name);
        write(what);
    }
    template <class T>
    void value(T const& what) {
        separate();
        write(what);
    }
    /// What is JSON already.
    void raw_member(std::string_view name, std::string_view json) {
        key(name);
        out_ << json;
    }

private:
    void begin(char bracket) {
        separate();
        open(bracket);
    }
    void open(char bracket);
    void end(char bracket);
    void separate();
    void new_line();
    void key(std::string_view name);

    void write(std::string_view text);
    void write(std::string const& text) { write(std::string_view{text}); }
    void write(char const* text) { write(std::string_view{text}); }
    void write(bool yes) { out_ << (yes ? "true" : "false"); }
    void write(double number);
    void write(std::integral auto number) { out_ << +number; }
    void write(Timestamp const& time) { write(to_string(time)); }
    void write(std::map<std::string, std::string> const& pairs);
    template <class T>
    void write(std::vector<T> const& list) {
        open('[');
        for (auto const& one : list) value(one);
        end(']');
    }
    template <class T>
    void write(std::optional<T> const& what) {
        if (what) {
            write(*what);
        } else {
            out_ << "null";
        }
    }

    std::ostream& out_;
    /// For each open bracket whether something stands in it.
    std::vector<bool> filled_{};
};

}  // namespace tinkxx::cli
