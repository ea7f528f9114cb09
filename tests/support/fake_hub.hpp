#pragma once

#include <tinkxx/text/hub.hpp>

#include <openssl/evp.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::test {

inline std::string digest(std::string_view data, EVP_MD const* kind) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> value{};
    unsigned size = 0;
    EVP_Digest(data.data(), data.size(), value.data(), &size, kind, nullptr);
    std::string text;
    for (unsigned i = 0; i < size; ++i) {
        text += "0123456789abcdef"[value[i] >> 4U];
        text += "0123456789abcdef"[value[i] & 15U];
    }
    return text;
}

inline std::string sha256_of(std::string_view data) { return digest(data, EVP_sha256()); }

/// What git calls a file.
inline std::string git_name_of(std::string_view data) {
    return digest("blob " + std::to_string(data.size()) + '\0' + std::string{data}, EVP_sha1());
}

/// Answers requests as a hub does: one repository with one commit, small files in git and large
/// ones at another address.
class FakeHub {
public:
    struct Answer {
        int status{200};
        text::HubHeaders headers{};
        std::string body{};
    };

    std::string repository{"org/model"};
    std::string commit{std::string(40, 'c')};
    std::string branch{"main"};
    std::map<std::string, std::string> files{};
    std::set<std::string> large{};
    /// Where large files are; empty: the hub itself.
    std::string storage{"https://storage.example"};
    /// Without it nothing is there.
    std::string token{};
    bool knows_ranges{true};
    /// Large files come with another content than their checksum says.
    bool damages{false};

    /// `path` is what follows the host. `range` is the value of that line, `sent_token` what
    /// follows "Bearer ".
    Answer answer(std::string_view method, std::string_view path, std::string_view range,
                  std::string_view sent_token) const {
        if (path.starts_with("/storage/")) {
            return content(method, files.at(std::string{path.substr(9)}), range);
        }
        if (!token.empty() && sent_token != token) return error(401, "RepoNotFound");
        auto const begin = "/" + repository + "/resolve/";
        if (!path.starts_with(begin)) return error(404, "RepoNotFound");
        path.remove_prefix(begin.size());
        auto const slash = path.find('/');
        auto const revision = path.substr(0, slash);
        if (revision != branch && revision != commit) return error(404, "RevisionNotFound");
        auto const found = files.find(std::string{path.substr(slash + 1)});
        if (found == files.end()) return error(404, "EntryNotFound");
        auto const& [name, text] = *found;
        if (!large.contains(name)) {
            auto made = content(method, text, range);
            made.headers.emplace_back("ETag", '"' + git_name_of(text) + '"');
            made.headers.emplace_back("X-Repo-Commit", commit);
            return made;
        }
        return {.status = 302,
                .headers = {{"X-Repo-Commit", commit},
                            {"X-Linked-ETag", '"' + sha256_of(text) + '"'},
                            {"X-Linked-Size", std::to_string(text.size())},
                            {"Location", storage + "/storage/" + name}}};
    }

private:
    static Answer error(int status, std::string code) {
        return {.status = status, .headers = {{"X-Error-Code", std::move(code)}}, .body = "no"};
    }

    Answer content(std::string_view method, std::string text, std::string_view range) const {
        if (damages && !text.empty()) text[0] ^= 1;
        auto const size = text.size();
        Answer made{.headers = {{"Content-Length", std::to_string(size)}}};
        if (method == "HEAD") return made;
        made.body = text;
        if (!knows_ranges || !range.starts_with("bytes=")) return made;
        std::size_t begin = 0;
        std::size_t last = 0;
        range.remove_prefix(6);
        auto const dash = range.find('-');
        std::from_chars(range.data(), range.data() + dash, begin);
        std::from_chars(range.data() + dash + 1, range.data() + range.size(), last);
        if (begin >= size) return {.status = 416};
        last = std::min(last, size - 1);
        made.status = 206;
        made.body = text.substr(begin, last - begin + 1);
        made.headers = {{"Content-Length", std::to_string(made.body.size())},
                        {"Content-Range", "bytes " + std::to_string(begin) + "-" +
                                              std::to_string(last) + "/" + std::to_string(size)}};
        return made;
    }
};

}  // namespace tinkxx::test
