#include "text/tokenizer/models/model.hpp"

#include "text/tokenizer/models/scratch.hpp"

namespace tinkxx::text {

void SpanModel::encode(std::string_view word, Scratch& scratch, std::vector<Token>& out) const {
    auto const make = [&] {
        scratch.spans.clear();
        encode_spans(word, scratch, scratch.spans);
        for (auto const& span : scratch.spans) out.push_back(span.id);
    };
    if (word.size() > WordCache::longest) return make();
    add_cached(scratch.words, WordCache::key_of(word), out, make);
}

}  // namespace tinkxx::text
