#include "client/options/shared_tokenizers.hpp"

#include <tinkxx/text/load.hpp>

#include "base/common/forever.hpp"

#include <memory>
#include <utility>

namespace tinkxx::client {

namespace {

TokenizerLoader known_to_this_machine() {
    return [load = text::tokenizer_loader({})](
               TokenizerId const& id) -> std::shared_ptr<Tokenizer const> {
        if (id.repository == "tinkxx/tiny") return std::make_shared<ByteTokenizer const>();
        return load(id);
    };
}

}  // namespace

Tokenizers tokenizers_of(ClientOptions const& options) {
    if (options.tokenizers) return *options.tokenizers;
    static base::Forever<Tokenizers> shared{known_to_this_machine()};
    return shared.get();
}

}  // namespace tinkxx::client
