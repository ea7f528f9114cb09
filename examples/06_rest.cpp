// Lists what an account has made, and fetches the newest weights to sample from into a folder:
//   TINKER_BASE_URL=http://127.0.0.1:8080 TINKER_API_KEY=tml-local ./06_rest FOLDER
#include <tinkxx/tinkxx.hpp>

#include <iostream>

int main(int argc, char** argv) try {
    tinkxx::RestClient rest;
    for (auto const& run : rest.training_runs()) {
        std::cout << run.training_run_id << ' ' << run.base_model << " rank "
                  << run.lora_rank.value_or(0) << '\n';
    }
    std::string newest;
    for (auto const& checkpoint : rest.user_checkpoints()) {
        std::cout << checkpoint.tinker_path << ' ' << checkpoint.checkpoint_type << '\n';
        if (newest.empty() && checkpoint.checkpoint_type == "sampler") {
            newest = checkpoint.tinker_path;
        }
    }
    if (newest.empty() || argc < 2) return 0;
    tinkxx::DownloadOptions options;
    options.target = argv[1];
    auto pending = rest.download_checkpoint(newest, options);
    for (auto const& file : pending.get().files) {
        std::cout << argv[1] << '/' << file.name << ' ' << file.bytes << " bytes\n";
    }
} catch (tinkxx::Error const& e) {
    std::cerr << e.what() << " [request " << e.request_id() << "]\n";
    return e.retryable() ? 75 : 1;  // 75 is EX_TEMPFAIL: worth trying again
}
