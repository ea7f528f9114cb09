#include "support/small_tokenizer.hpp"

#include <algorithm>
#include <stdexcept>

namespace tinkxx::test {

namespace {

std::string from_hex(std::string const& hex) {
    std::string out;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    }
    return out;
}

// The range that the second byte of a character must be in.
std::pair<unsigned, unsigned> second_range(unsigned lead) {
    switch (lead) {
        case 0xe0:
            return {0xa0, 0xbf};
        case 0xed:
            return {0x80, 0x9f};
        case 0xf0:
            return {0x90, 0xbf};
        case 0xf4:
            return {0x80, 0x8f};
        default:
            return {0x80, 0xbf};
    }
}

}  // namespace

SmallTokenizer::SmallTokenizer(std::vector<std::pair<std::string, std::string>> const& merges,
                               std::vector<Added> added, std::optional<std::string> bos,
                               std::optional<std::string> eos)
    : added_{std::move(added)}, bos_{std::move(bos)}, eos_{std::move(eos)} {
    for (int byte = 0; byte < 256; ++byte) texts_.emplace_back(1, static_cast<char>(byte));
    auto const id = [this](std::string const& text) {
        auto const found = std::ranges::find(texts_, text);
        if (found == texts_.end()) throw std::runtime_error{"a merge of what is no token"};
        return static_cast<Token>(found - texts_.begin());
    };
    for (auto const& [left, right] : merges) {
        merges_.emplace_back(id(left), id(right));
        texts_.push_back(left + right);
    }
    first_added_ = texts_.size();
}

std::shared_ptr<SmallTokenizer const> SmallTokenizer::read(std::istream& in) {
    std::vector<std::pair<std::string, std::string>> merges;
    std::vector<Added> added;
    std::optional<std::string> bos;
    std::optional<std::string> eos;
    std::string line;
    while (std::getline(in, line)) {
        auto const space = line.find(' ');
        auto const what = line.substr(0, space);
        auto const rest = space == std::string::npos ? std::string{} : line.substr(space + 1);
        if (what == "merge") {
            auto const middle = rest.find(' ');
            merges.emplace_back(from_hex(rest.substr(0, middle)),
                                from_hex(rest.substr(middle + 1)));
        } else if (what == "special" || what == "added") {
            added.push_back({rest, what == "special"});
        } else if (what == "bos") {
            bos = rest;
        } else if (what == "eos") {
            eos = rest;
        }
    }
    return std::make_shared<SmallTokenizer>(merges, std::move(added), std::move(bos),
                                            std::move(eos));
}

std::optional<SmallTokenizer::Found> SmallTokenizer::next_added(std::string_view text,
                                                                std::size_t from) const {
    std::optional<Found> best;
    for (std::size_t i = 0; i < added_.size(); ++i) {
        auto const at = text.find(added_[i].text, from);
        if (at == std::string_view::npos) continue;
        auto const longer =
            best && at == best->at && added_[i].text.size() > added_[best->index].text.size();
        if (!best || at < best->at || longer) best = Found{at, i};
    }
    return best;
}

void SmallTokenizer::append_bytes(std::vector<Token>& out, std::string_view text) const {
    std::vector<Token> word;
    for (char const c : text) word.push_back(static_cast<unsigned char>(c));
    // A merge makes a token that only later ones use, so each is done once, for all places.
    for (std::size_t rank = 0; rank < merges_.size(); ++rank) {
        auto const [left, right] = merges_[rank];
        std::size_t kept = 0;
        for (std::size_t i = 0; i < word.size(); ++i) {
            if (i + 1 < word.size() && word[i] == left && word[i + 1] == right) {
                word[kept++] = static_cast<Token>(256 + rank);
                ++i;
            } else {
                word[kept++] = word[i];
            }
        }
        word.resize(kept);
    }
    out.insert(out.end(), word.begin(), word.end());
}

std::vector<Token> SmallTokenizer::encode(std::string_view text, Specials specials) const {
    std::vector<Token> out;
    std::size_t done = 0;
    std::size_t from = 0;
    while (auto const found = next_added(text, from)) {
        auto const& token = added_[found->index];
        from = found->at + token.text.size();
        if (token.special && specials == Specials::as_text) continue;
        append_bytes(out, text.substr(done, found->at - done));
        out.push_back(static_cast<Token>(first_added_ + found->index));
        done = from;
    }
    append_bytes(out, text.substr(done));
    return out;
}

std::string SmallTokenizer::decode(std::span<Token const> tokens) const {
    std::string out;
    for (auto const token : tokens) {
        auto const id = static_cast<std::size_t>(token);
        if (token < 0 || id >= size()) continue;
        out += id < first_added_ ? texts_[id] : added_[id - first_added_].text;
    }
    return lossy_utf8(out);
}

std::optional<Token> SmallTokenizer::find(std::string_view token) const {
    auto const found = std::ranges::find(added_, token, &Added::text);
    if (found == added_.end()) return std::nullopt;
    return static_cast<Token>(first_added_ + static_cast<std::size_t>(found - added_.begin()));
}

std::string lossy_utf8(std::string_view bytes) {
    std::string out;
    for (std::size_t at = 0; at < bytes.size();) {
        auto const lead = static_cast<unsigned char>(bytes[at]);
        std::size_t const wanted = lead < 0x80U                     ? 1
                                   : lead >= 0xc2U && lead <= 0xdfU ? 2
                                   : lead >= 0xe0U && lead <= 0xefU ? 3
                                   : lead >= 0xf0U && lead <= 0xf4U ? 4
                                                                    : 0;
        std::size_t size = 1;
        auto range = second_range(lead);
        while (size < wanted && at + size < bytes.size()) {
            auto const next = static_cast<unsigned char>(bytes[at + size]);
            if (next < range.first || next > range.second) break;
            range = {0x80, 0xbf};
            ++size;
        }
        if (size == wanted) {
            out += bytes.substr(at, size);
        } else {
            out += "\xef\xbf\xbd";
        }
        at += size;
    }
    return out;
}

}  // namespace tinkxx::test
