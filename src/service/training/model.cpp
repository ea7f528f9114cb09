#include "service/training/model.hpp"

#include <utility>

namespace tinkxx::service {

TrainingModel::TrainingModel(std::shared_ptr<SamplingShared> shared, std::string id,
                             std::optional<OptimizerConfig> optimizer)
    : shared_{std::move(shared)},
      id_{std::move(id)},
      optimizer_{std::move(optimizer)},
      caps_{.items = shared_->holder().chunk_items(), .bytes = shared_->holder().chunk_bytes()},
      parallel_{shared_->holder().flags().parallel_fwdbwd_chunks},
      compression_{shared_->holder().flags().proto_compress_fwdbwd ? wire::Compression::zstd
                                                                   : wire::Compression::none},
      encodings_{shared_->encodings()},
      desk_{std::make_shared<TurnDesk>(shared_->scheduler())} {}

}  // namespace tinkxx::service
