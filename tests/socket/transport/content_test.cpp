// Compressed bodies: undone as they come, and never without bound.  R-EXT-90
#include "socket/modes.hpp"

namespace tinkxx::test {
namespace {

struct Encoding {
    std::string name{};
    std::string (*pack)(std::string_view){};
};

class ContentTest : public testing::TestWithParam<std::tuple<Mode, Encoding>> {
protected:
    Mode mode() const { return std::get<0>(GetParam()); }
    Encoding const& encoding() const { return std::get<1>(GetParam()); }
    HttpServer::Handler sends(std::string packed) const {
        return [packed = std::move(packed), name = encoding().name](ReceivedRequest const&) {
            return Reaction{.answer = {.headers = {{"content-encoding", name}}, .body = packed}};
        };
    }

    HttpDriver driver{net_options(mode())};
};

INSTANTIATE_TEST_SUITE_P(
    , ContentTest,
    testing::Combine(testing::Values(Mode{HttpVersion::http1, false},
                                     Mode{HttpVersion::http2, true}),
                     testing::Values(Encoding{"gzip", gzip}, Encoding{"zstd", zstd})),
    [](auto const& each) {
        return mode_name({std::get<0>(each.param), 0}) + std::get<1>(each.param).name;
    });

TEST_P(ContentTest, IsOfferedAndUndone) {  // R-EXT-90
    auto const plain = std::string(100'000, 'a') + pattern(300'000);
    std::string offered;
    HttpServer server{[&, handler = sends(encoding().pack(plain))](ReceivedRequest const& request) {
                          offered = request.header("accept-encoding");
                          return handler(request);
                      },
                      server_options(mode())};

    auto const outcome = driver.get(server.url());

    ASSERT_EQ(outcome.status(), 200) << outcome.text();
    EXPECT_TRUE(outcome.body == plain);
    EXPECT_NE(offered.find(encoding().name), std::string::npos) << offered;
    EXPECT_EQ(outcome.timing.bytes_received, encoding().pack(plain).size());
}

TEST_P(ContentTest, IsLeftAsItCameWhenTheCallerWantsThat) {
    auto const packed = encoding().pack("plain text");
    HttpServer server{sends(packed), server_options(mode())};
    auto request = get_request(server.url());
    request.decode_content = false;

    auto const outcome = driver.run(request);

    EXPECT_TRUE(outcome.body == packed);
    EXPECT_EQ(outcome.header("content-encoding"), encoding().name);
}

TEST_P(ContentTest, ABombEndsAtTheLimit) {
    // 64 MB of nothing in a few KB.
    HttpServer server{sends(encoding().pack(std::string(std::size_t{64} << 20U, '\0'))),
                      server_options(mode())};
    auto request = get_request(server.url());
    request.max_response_bytes = 1'000'000;

    auto const outcome = driver.run(request);

    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::too_large);
    EXPECT_LE(outcome.body.size(), 1'000'000U);
    EXPECT_NE(outcome.failure->message.find("1000000"), std::string::npos) << outcome.text();
}

TEST_P(ContentTest, PausingInTheMiddleOfAPieceLosesNothing) {
    // One small piece on the wire becomes many on the way to the sink.
    auto const plain = std::string(5'000'000, 'z');
    HttpServer server{sends(encoding().pack(plain)), server_options(mode())};
    auto& exchange = driver.start_and_pause_after(get_request(server.url()), 1);
    exchange.wait_for_bytes(1);
    driver.on_loop([] {});
    EXPECT_LT(exchange.received(), plain.size());
    EXPECT_FALSE(exchange.ended());
    for (std::size_t part = 1; part < 10 && !exchange.ended(); ++part) {
        exchange.pause(false);
        exchange.pause(true);
    }
    exchange.pause(false);
    EXPECT_TRUE(exchange.wait().body == plain) << exchange.wait().text();
}

TEST_P(ContentTest, ThatIsCutShortIsAFailure) {
    auto packed = encoding().pack(pattern(50'000));
    packed.resize(packed.size() / 2);
    HttpServer server{sends(packed), server_options(mode())};

    auto const outcome = driver.get(server.url());

    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::decoding);
}

TEST_P(ContentTest, ThatIsNotWhatItSaysIsAFailure) {
    HttpServer server{sends("this was never compressed"), server_options(mode())};

    auto const outcome = driver.get(server.url());

    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::decoding);
    // The connection is not to blame for the content.
    HttpServer good{sends(encoding().pack("fine")), server_options(mode())};
    EXPECT_EQ(driver.get(good.url()).body, "fine");
}

TEST_P(ContentTest, CancelInTheMiddleOfAPieceEndsQuietly) {
    HttpServer server{sends(encoding().pack(std::string(5'000'000, 'z'))), server_options(mode())};
    auto& exchange = driver.start_and_pause_after(get_request(server.url()), 1);
    exchange.wait_for_bytes(1);
    exchange.cancel();
    EXPECT_EQ(driver.get(server.url()).body.size(), 5'000'000U);
}

TEST(Content, OfAnUnknownEncodingIsDeliveredAsItCame) {
    HttpServer server{[](ReceivedRequest const&) {
        return Reaction{.answer = {.headers = {{"content-encoding", "rot13"}}, .body = "uryyb"}};
    }};
    HttpDriver driver;
    auto const outcome = driver.get(server.url());
    EXPECT_EQ(outcome.body, "uryyb") << outcome.text();
    EXPECT_EQ(outcome.header("content-encoding"), "rot13");
}

TEST(Content, AcceptEncodingOfTheCallerIsNotTouched) {
    ReceivedRequest seen;
    HttpServer server{[&](ReceivedRequest const& request) {
        seen = request;
        return Reaction{};
    }};
    HttpDriver driver;
    auto request = get_request(server.url());
    request.headers.add("Accept-Encoding", "br");
    ASSERT_EQ(driver.run(request).status(), 200);
    EXPECT_EQ(seen.header("accept-encoding"), "br");
}

TEST(Content, PlainBodiesHaveTheSameLimit) {
    HttpServer server{[](ReceivedRequest const& request) {
        return Reaction{.answer = {.body = pattern(request.target == "/fits" ? 5000 : 5001)}};
    }};
    HttpDriver driver;
    auto request = get_request(server.url("/fits"));
    request.max_response_bytes = 5000;
    EXPECT_EQ(driver.run(request).body.size(), 5000U);
    request.url = server.url("/too-long");
    auto const outcome = driver.run(request);
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::too_large);
}

}  // namespace
}  // namespace tinkxx::test
