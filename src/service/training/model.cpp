#include "service/training/model.hpp"

#include <utility>

namespace tinkxx::service {

TrainingModel::TrainingModel(std::shared_ptr<ClientCore> core, std::string id,
                             std::optional<OptimizerConfig> optimizer)
    : core_{std::move(core)},
      id_{std::move(id)},
      optimizer_{std::move(optimizer)},
      caps_{.items = core_->session().chunk_items(), .bytes = core_->session().chunk_bytes()},
      parallel_{core_->session().flags().parallel_fwdbwd_chunks},
      compression_{core_->session().flags().proto_compress_fwdbwd ? wire::Compression::zstd
                                                                  : wire::Compression::none},
      encodings_{core_->encodings()},
      desk_{std::make_shared<TurnDesk>(core_->scheduler())} {}

}  // namespace tinkxx::service
