// Length-prefixed msgpack, the subset that judge and runner speak: maps with string keys, unsigned integers, booleans,
// strings and byte strings. Whatever else arrives ends the runner. The peer is the judge, which is trusted; the caps
// guard against mistakes, not against attack.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <unistd.h>

namespace wire {

constexpr uint32_t kMaxFrame = 64u << 20;

struct Value {
    uint64_t number = 0;
    std::string bytes;
};
using Message = std::map<std::string, Value>;

[[noreturn]] inline void broken() { _exit(70); }

inline bool read_exactly(int fd, void* data, size_t size) {
    auto* at = static_cast<char*>(data);
    while (size > 0) {
        ssize_t got = ::read(fd, at, size);
        if (got <= 0) return false;
        at += got;
        size -= static_cast<size_t>(got);
    }
    return true;
}

inline void write_exactly(int fd, const void* data, size_t size) {
    auto* at = static_cast<const char*>(data);
    while (size > 0) {
        ssize_t put = ::write(fd, at, size);
        if (put <= 0) broken();
        at += put;
        size -= static_cast<size_t>(put);
    }
}

class Reader {
  public:
    explicit Reader(const std::string& frame) : frame_(frame) {}

    Message message() {
        unsigned tag = byte();
        if ((tag & 0xf0) != 0x80) broken();
        Message result;
        for (unsigned left = tag & 0x0f; left > 0; left--) {
            std::string key = value().bytes;
            result[key] = value();
        }
        return result;
    }

  private:
    Value value() {
        unsigned tag = byte();
        if (tag <= 0x7f) return {tag, {}};
        if ((tag & 0xe0) == 0xa0) return {0, take(tag & 0x1f)};
        switch (tag) {
            case 0xc2: return {0, {}};
            case 0xc3: return {1, {}};
            case 0xc4: case 0xd9: return {0, take(big(1))};
            case 0xc5: case 0xda: return {0, take(big(2))};
            case 0xc6: case 0xdb: return {0, take(big(4))};
            case 0xcc: return {big(1), {}};
            case 0xcd: return {big(2), {}};
            case 0xce: return {big(4), {}};
            case 0xcf: return {big(8), {}};
            default: broken();
        }
    }

    unsigned byte() {
        if (at_ >= frame_.size()) broken();
        return static_cast<unsigned char>(frame_[at_++]);
    }

    uint64_t big(int size) {
        uint64_t number = 0;
        while (size-- > 0) number = number << 8 | byte();
        return number;
    }

    std::string take(uint64_t size) {
        if (size > frame_.size() - at_) broken();
        std::string bytes = frame_.substr(at_, size);
        at_ += size;
        return bytes;
    }

    const std::string& frame_;
    size_t at_ = 0;
};

inline bool receive(int fd, Message& message) {
    uint32_t size = 0;
    if (!read_exactly(fd, &size, sizeof size)) return false;
    if (size > kMaxFrame) broken();
    std::string frame(size, '\0');
    if (!read_exactly(fd, frame.data(), size)) return false;
    message = Reader(frame).message();
    return true;
}

// A map of up to 15 entries, built by hand.
class Writer {
  public:
    Writer& number(const char* key, uint64_t value) {
        text(key);
        body_ += '\xcf';
        for (int shift = 56; shift >= 0; shift -= 8) body_ += static_cast<char>(value >> shift & 0xff);
        entries_++;
        return *this;
    }

    Writer& word(const char* key, const std::string& value) {
        text(key);
        text(value);
        entries_++;
        return *this;
    }

    void send(int fd) const {
        uint32_t size = static_cast<uint32_t>(body_.size() + 1);
        std::string frame(reinterpret_cast<const char*>(&size), sizeof size);
        frame += static_cast<char>(0x80 | entries_);
        frame += body_;
        write_exactly(fd, frame.data(), frame.size());
    }

  private:
    void text(const std::string& value) {
        size_t size = value.size() < 2000 ? value.size() : 2000;
        body_ += '\xda';
        body_ += static_cast<char>(size >> 8 & 0xff);
        body_ += static_cast<char>(size & 0xff);
        body_.append(value, 0, size);
    }

    std::string body_;
    unsigned entries_ = 0;
};

}  // namespace wire
