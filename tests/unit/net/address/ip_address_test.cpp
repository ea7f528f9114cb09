#include "net/address/ip_address.hpp"

#include <gtest/gtest.h>

#include <net/if.h>

#include <cstring>
#include <string>

namespace tinkxx::net {
namespace {

TEST(IpAddress, ReadsAndWritesBothFamilies) {
    for (std::string const text :
         {"127.0.0.1", "0.0.0.0", "255.255.255.255", "::", "::1", "2001:db8::ff00:42:8329"}) {
        auto const address = IpAddress::parse(text);
        ASSERT_TRUE(address) << text;
        EXPECT_EQ(address->text(), text);
        EXPECT_EQ(address->is_v6(), text.find(':') != std::string::npos) << text;
    }
    EXPECT_EQ(IpAddress::parse("0:0:0:0:0:0:0:1"), IpAddress::parse("::1"));
    EXPECT_NE(IpAddress::parse("0.0.0.0"), IpAddress::parse("::"));
}

TEST(IpAddress, RefusesWhatIsNoAddress) {
    using namespace std::string_literals;
    for (auto const& text : {""s, "localhost"s, "1.2.3"s, "1.2.3.4.5"s, "256.1.1.1"s, "127.1"s,
                             "[::1]"s, "127.0.0.1:80"s, "::1::"s, "1.2.3.4%lo"s, "::1\0"s}) {
        EXPECT_FALSE(IpAddress::parse(text)) << text;
    }
}

TEST(IpAddress, KeepsTheScopeOfALinkLocalAddress) {
    EXPECT_EQ(IpAddress::parse("2001:db8::1%7")->text(), "2001:db8::1%7");
    // No interface has this number.
    EXPECT_EQ(IpAddress::parse("fe80::1%987654")->text(), "fe80::1%987654");
    auto const loopback = ::if_nametoindex("lo");
    if (loopback == 0) GTEST_SKIP() << "there is no interface lo";
    EXPECT_EQ(IpAddress::parse("fe80::1%lo"),
              IpAddress::parse("fe80::1%" + std::to_string(loopback)));
    EXPECT_EQ(IpAddress::parse("fe80::1%lo")->text(), "fe80::1%lo");
}

TEST(IpAddress, GoesThroughTheSystemsFormUnchanged) {
    for (std::string const text : {"127.0.0.1", "2001:db8::1", "fe80::1%987654"}) {
        auto const address = IpAddress::parse(text);
        SocketAddress const socket{*address, 443};
        EXPECT_EQ(IpAddress::of(socket.get()), address) << text;
        EXPECT_EQ(socket.family(), address->is_v6() ? AF_INET6 : AF_INET);
    }
    sockaddr_in v4{};
    SocketAddress const socket{*IpAddress::parse("127.0.0.1"), 443};
    ASSERT_EQ(socket.size(), sizeof v4);
    std::memcpy(&v4, &socket.get(), sizeof v4);
    EXPECT_EQ(ntohs(v4.sin_port), 443);

    sockaddr other{};
    other.sa_family = AF_UNIX;
    EXPECT_FALSE(IpAddress::of(other));
}

}  // namespace
}  // namespace tinkxx::net
