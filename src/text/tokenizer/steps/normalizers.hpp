#pragma once

#include "text/regex/pattern.hpp"
#include "text/unicode/aligned_text.hpp"
#include "text/unicode/normal_forms.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::text {

/// Changes a text before it is cut into words. Any thread.
class Normalizer {
public:
    Normalizer() = default;
    Normalizer(Normalizer const&) = delete;
    Normalizer& operator=(Normalizer const&) = delete;
    virtual ~Normalizer() = default;

    virtual void apply(AlignedText& text) const = 0;
    /// Whether it certainly leaves a text as it is; asked first, because most do.
    [[nodiscard]] virtual bool keeps(std::string_view text) const = 0;
};

using Normalizers = std::vector<std::unique_ptr<Normalizer const>>;

class NormalFormNormalizer final : public Normalizer {
public:
    explicit NormalFormNormalizer(NormalForm form) : form_{form} {}
    void apply(AlignedText& text) const override;
    [[nodiscard]] bool keeps(std::string_view text) const override;

private:
    NormalForm form_;
};

class LowercaseNormalizer final : public Normalizer {
public:
    void apply(AlignedText& text) const override;
    [[nodiscard]] bool keeps(std::string_view text) const override;
};

/// Removes white space at the ends.
class StripNormalizer final : public Normalizer {
public:
    StripNormalizer(bool left, bool right) : left_{left}, right_{right} {}
    void apply(AlignedText& text) const override;
    [[nodiscard]] bool keeps(std::string_view text) const override;

private:
    bool left_;
    bool right_;
};

class StripAccentsNormalizer final : public Normalizer {
public:
    void apply(AlignedText& text) const override;
    [[nodiscard]] bool keeps(std::string_view text) const override;
};

class ReplaceNormalizer final : public Normalizer {
public:
    ReplaceNormalizer(Pattern pattern, std::string content)
        : pattern_{std::move(pattern)}, content_{std::move(content)} {}
    void apply(AlignedText& text) const override;
    [[nodiscard]] bool keeps(std::string_view text) const override;

private:
    Pattern pattern_;
    std::string content_;
};

class PrependNormalizer final : public Normalizer {
public:
    explicit PrependNormalizer(std::string text) : text_{std::move(text)} {}
    void apply(AlignedText& text) const override { text.prepend(text_); }
    [[nodiscard]] bool keeps(std::string_view text) const override {
        return text.empty() || text_.empty();
    }

private:
    std::string text_;
};

struct BertNormalizerOptions {
    bool clean_text{true};
    bool space_ideographs{true};
    bool strip_accents{true};
    bool lowercase{true};
};

class BertNormalizer final : public Normalizer {
public:
    explicit BertNormalizer(BertNormalizerOptions options) : options_{options} {}
    void apply(AlignedText& text) const override;
    [[nodiscard]] bool keeps(std::string_view /*text*/) const override { return false; }

private:
    BertNormalizerOptions options_;
};

/// What a translation model of SentencePiece does to control characters and rare spaces.
class NmtNormalizer final : public Normalizer {
public:
    void apply(AlignedText& text) const override;
    [[nodiscard]] bool keeps(std::string_view text) const override;
};

/// Writes each byte as the character that stands for it.
class ByteLevelNormalizer final : public Normalizer {
public:
    void apply(AlignedText& text) const override { text.map_bytes(); }
    [[nodiscard]] bool keeps(std::string_view text) const override { return text.empty(); }
};

/// Replaces characters and clusters by a table that SentencePiece made: a double array over their
/// bytes, and the replacements, each with a zero behind it.
class PrecompiledNormalizer final : public Normalizer {
public:
    /// `table` as it is in the file. Throws `ValidationError` if it is damaged.
    PrecompiledNormalizer(std::string_view table, std::string const& field);
    void apply(AlignedText& text) const override;
    [[nodiscard]] bool keeps(std::string_view text) const override { return text.empty(); }

private:
    /// What a part of a text becomes: the replacement of the shortest key that it begins with.
    [[nodiscard]] bool find(std::string_view part, std::string_view& replacement) const noexcept;

    std::vector<std::uint32_t> units_;
    std::string replacements_;
};

}  // namespace tinkxx::text
