#include "model/tensor_name.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "model/families/family.hpp"

namespace isthmus {

using enum TensorParallel;

namespace {

struct NamedSplit {
  std::string_view suffix;  // whole dotted parts
  TensorParallel split;
};

constexpr std::array named_splits{
    NamedSplit{"embed_tokens.weight", vocabulary},
    NamedSplit{"embeddings.weight", vocabulary},
    NamedSplit{"lm_head.weight", vocabulary},
    NamedSplit{"shared_head.head.weight", vocabulary},
    // attention
    NamedSplit{"q_proj.weight", rows},
    NamedSplit{"k_proj.weight", rows},
    NamedSplit{"v_proj.weight", rows},
    NamedSplit{"q_proj.bias", rows},
    NamedSplit{"k_proj.bias", rows},
    NamedSplit{"v_proj.bias", rows},
    NamedSplit{"o_proj.weight", columns},
    NamedSplit{"sinks", rows},
    NamedSplit{"q_b_proj.weight", rows},
    NamedSplit{"kv_b_proj.weight", rows},
    // feed-forward networks
    NamedSplit{"gate_proj.weight", rows},
    NamedSplit{"up_proj.weight", rows},
    NamedSplit{"down_proj.weight", columns},
    NamedSplit{"experts.gate_up_proj", rows},
    NamedSplit{"experts.gate_up_proj_bias", rows},
    NamedSplit{"experts.down_proj", columns},
    NamedSplit{"w1.weight", rows},
    NamedSplit{"w3.weight", rows},
    NamedSplit{"w2.weight", columns},
    NamedSplit{"mtp.fc.weight", rows},
    // state space and delta attention
    NamedSplit{"linear_attn.in_proj_qkv.weight", rows},
    NamedSplit{"linear_attn.in_proj_z.weight", rows},
    NamedSplit{"linear_attn.in_proj_b.weight", rows},
    NamedSplit{"linear_attn.in_proj_a.weight", rows},
    NamedSplit{"linear_attn.conv1d.weight", rows},
    NamedSplit{"linear_attn.A_log", rows},
    NamedSplit{"linear_attn.dt_bias", rows},
    NamedSplit{"linear_attn.out_proj.weight", columns},
    NamedSplit{"mixer.in_proj.weight", rows},
    NamedSplit{"mixer.conv1d.weight", rows},
    NamedSplit{"mixer.conv1d.bias", rows},
    NamedSplit{"mixer.A_log", rows},
    NamedSplit{"mixer.D", rows},
    NamedSplit{"mixer.dt_bias", rows},
    NamedSplit{"mixer.norm.weight", rows},
    NamedSplit{"mixer.out_proj.weight", columns},
    NamedSplit{"self_attn.q_conv1d.weight", rows},
    NamedSplit{"self_attn.k_conv1d.weight", rows},
    NamedSplit{"self_attn.v_conv1d.weight", rows},
    NamedSplit{"self_attn.dt_bias", rows},
    NamedSplit{"self_attn.f_b_proj.weight", rows},
    NamedSplit{"self_attn.b_proj.weight", rows},
    NamedSplit{"self_attn.g_proj.weight", rows},
};

// -1 for what is no plain number; leading zeros would not survive being written again.
std::int64_t number(std::string_view part) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  const bool whole = error == std::errc() && end == part.data() + part.size() && value >= 0;
  return whole && (part.front() != '0' || part.size() == 1) ? value : -1;
}

}  // namespace

bool has_name_suffix(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return false;
  return name.size() == suffix.size() || name[name.size() - suffix.size() - 1] == '.';
}

PatternName take_apart(std::string_view name) {
  PatternName pattern;
  std::string_view previous;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t dot = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, dot - begin);
    const std::int64_t value = dot < name.size() ? number(part) : -1;
    if (begin > 0) pattern.text += '.';
    if (value >= 0 && previous == "experts" && pattern.expert < 0 && value < families::max_experts) {
      pattern.expert = value;
      pattern.text += "{e}";
    } else if (value >= 0 && (previous == "layers" || previous == "blocks") && pattern.layer < 0 &&
               value < families::max_layers) {
      pattern.layer = static_cast<int>(value);
      pattern.stack = pattern.text;
      pattern.text += "{l}";
    } else {
      pattern.text += part;
    }
    previous = part;
    begin = dot + 1;
  }
  return pattern;
}

std::optional<Dtype> parse_stored_dtype(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Dtype>, 20> names{{
      {"BF16", Dtype::bf16},
      {"bfloat16", Dtype::bf16},
      {"F16", Dtype::f16},
      {"float16", Dtype::f16},
      {"F32", Dtype::f32},
      {"float32", Dtype::f32},
      {"F64", Dtype::f64},
      {"float64", Dtype::f64},
      {"F8_E4M3", Dtype::fp8_e4m3},
      {"float8_e4m3fn", Dtype::fp8_e4m3},
      {"F8_E5M2", Dtype::fp8_e5m2},
      {"float8_e5m2", Dtype::fp8_e5m2},
      {"U8", Dtype::u8},
      {"uint8", Dtype::u8},
      {"I8", Dtype::i8},
      {"int8", Dtype::i8},
      {"I32", Dtype::i32},
      {"int32", Dtype::i32},
      {"I64", Dtype::i64},
      {"int64", Dtype::i64},
  }};
  if (name.starts_with("torch.")) name.remove_prefix(6);
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const auto& entry) { return entry.first == name; });
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

TensorParallel split_of(std::string_view name) {
  const auto found = std::find_if(named_splits.begin(), named_splits.end(), [&](const NamedSplit& entry) {
    return has_name_suffix(name, entry.suffix);
  });
  return found == named_splits.end() ? replicated : found->split;
}

}  // namespace isthmus
