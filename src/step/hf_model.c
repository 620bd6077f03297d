/* SPDX-License-Identifier: BSD-3-Clause */
/* hf_model.c - convert config.json of Hugging Face Transformers to the terms of
 * jobs/training/models.  Keys are those of transformers/models/NAME/configuration_NAME.py. */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "step/model.h"

enum { HF_LAYERS_MAX = 100000 };

#define HF_EXPERT_STEP "decoder_sparse_step|interleave_moe_layer_step|moe_layer_freq"
#define HF_EXPERTS "n_routed_experts|num_experts|num_local_experts|moe_num_experts"
#define HF_SHARED "n_shared_experts|num_shared_experts|num_shared_expert|moe_num_shared_experts"

/* Value of the first of these keys ("a|b") that is a whole number; def: none is. */
static int hf_int(const json_t *c, const char *keys, int def)
{
    char key[48];

    for (size_t n; *keys; keys += n + (keys[n] == '|')) {
        n = strcspn(keys, "|");
        snprintf(key, sizeof(key), "%.*s", (int)n, keys);
        if (json_is_integer(json_object_get(c, key)))
            return (int)json_integer_value(json_object_get(c, key));
    }
    return def;
}

static bool hf_is(const json_t *c, const char *types)
{
    const char *type = json_string_value(json_object_get(c, "model_type")), *at;
    size_t n = type ? strlen(type) : 0;

    for (at = types; n && (at = strstr(at, type)) != NULL; at++)
        if ((at == types || at[-1] == ' ') && (!at[n] || at[n] == ' '))
            return true;
    return false;
}

/* Add a value above zero. */
static void hf_put(json_t *o, const char *key, int value)
{
    if (value > 0)
        json_object_set_new(o, key, json_integer(value));
}

static json_t *hf_attention(const json_t *c, bool windowed)
{
    json_t *a = json_object();
    int heads = hf_int(c, "num_attention_heads|n_head|n_heads", 0);
    bool mla = hf_int(c, "kv_lora_rank", 0) > 0;

    json_object_set_new(a, "kind", json_string(mla ? "mla" : "gqa"));
    hf_put(a, "heads", heads);
    hf_put(a, "window", windowed ? hf_int(c, "sliding_window", 0) : 0);
    if (mla) {
        hf_put(a, "q_rank", hf_int(c, "q_lora_rank", 0));
        hf_put(a, "kv_rank", hf_int(c, "kv_lora_rank", 0));
        hf_put(a, "nope_dim", hf_int(c, "qk_nope_head_dim", 0));
        hf_put(a, "rope_dim", hf_int(c, "qk_rope_head_dim", 0));
        hf_put(a, "v_dim", hf_int(c, "v_head_dim", 0));
    } else {
        hf_put(a, "kv_heads", hf_int(c, "num_key_value_heads", heads));
        hf_put(
            a, "head_dim",
            hf_int(c, "head_dim", heads ? hf_int(c, "hidden_size|n_embd|d_model", 0) / heads : 0));
    }
    if (json_is_true(json_object_get(c, "attention_bias")) || hf_is(c, "qwen2 qwen2_moe gpt2"))
        json_object_set_new(a, "bias", json_true());
    return a;
}

static json_t *hf_mlp(const json_t *c, bool sparse)
{
    static const char plain[] =
        "gpt2 gpt_neox gpt_bigcode falcon phi starcoder2 opt bloom mpt nemotron";
    json_t *p = json_object();
    int ffn = hf_int(c, "intermediate_size|n_inner|ffn_dim",
                     4 * hf_int(c, "hidden_size|n_embd|d_model", 0));
    int of_expert = hf_int(c, "moe_intermediate_size|expert_ffn_hidden_size", ffn),
        groups = hf_int(c, "n_group", 0);
    int shared = hf_int(c, "shared_expert_intermediate_size|shared_intermediate_size",
                        hf_int(c, HF_SHARED, 0) * of_expert);

    json_object_set_new(p, "kind", json_string(hf_is(c, plain) ? "plain" : "swiglu"));
    hf_put(p, "ffn", sparse ? of_expert : hf_int(c, "intermediate_size_mlp", ffn));
    if (sparse) {
        hf_put(p, "experts", hf_int(c, HF_EXPERTS, 0));
        hf_put(p, "topk",
               hf_int(c, "num_experts_per_tok|num_experts_per_token|moe_topk|top_k_experts", 0));
        hf_put(p, "shared_ffn", hf_is(c, "llama4_text") ? ffn : shared);
        hf_put(p, "groups", groups > 1 ? groups : 0);
        hf_put(p, "nodes_max", groups > 1 ? hf_int(c, "topk_group", 0) : 0);
    }
    return p;
}

/* True if layer i has windowed attention. */
static bool hf_windowed(const json_t *c, int i)
{
    const char *type =
        json_string_value(json_array_get(json_object_get(c, "layer_types"), (size_t)i));
    /* Where the file leaves it out: the default of its configuration_NAME.py. */
    int usual = hf_is(c, "gemma2") ? 2 : hf_is(c, "gemma3_text") ? 6 : hf_is(c, "cohere2") ? 4 : 0;
    int pattern = hf_int(c, "sliding_window_pattern|_sliding_window_pattern", usual);
    const char *letters = json_string_value(json_object_get(c, "sliding_window_pattern"));

    if (json_is_false(json_object_get(c, "use_sliding_window")) ||
        hf_int(c, "sliding_window", 0) < 1)
        return false;
    if (!type && letters && *letters) /* "LLLG": local and global */
        return letters[(size_t)i % strlen(letters)] == 'L';
    return type ? !strcmp(type, "sliding_attention") : pattern ? (i + 1) % pattern != 0 : true;
}

static bool hf_sparse(const json_t *c, int i)
{
    const json_t *dense = json_object_get(c, "mlp_only_layers"), *one;
    int step = hf_int(c, HF_EXPERT_STEP, 1);
    size_t k;

    json_array_foreach(dense, k, one) if (json_integer_value(one) == i) return false;
    if (hf_int(c, HF_EXPERTS, 0) < 1 || i < hf_int(c, "first_k_dense_replace", 0))
        return false;
    return hf_is(c, "deepseek_v2 deepseek_v3") ? i % step == 0 : (i + 1) % step == 0;
}

/* True if a whole number above 0 under this key is likely to size parameters, and the key is none of those that this
 * reader uses or that size none. */
static bool hf_sizes_unknown(const char *key)
{
    static const char *const sizes[] = {"expert", "_dim",   "_rank", "_heads", "_size", "_layers",
                                        "_state", "_inner", "ffn",   "mamba",  "ssm",   "conv",
                                        "linear", "latent", "lora",  "mtp",    "moe_"};
    static const char known[] =
        " " HF_EXPERTS "|" HF_SHARED " num_attention_heads num_key_value_heads n_heads hidden_size "
        "intermediate_size num_hidden_layers n_layers n_inner ffn_dim head_dim vocab_size "
        "moe_intermediate_size expert_ffn_hidden_size intermediate_size_mlp "
        "shared_expert_intermediate_size shared_intermediate_size "
        "moe_shared_expert_intermediate_size kv_lora_rank q_lora_rank qk_nope_head_dim "
        "qk_rope_head_dim qk_head_dim v_head_dim num_experts_per_tok num_experts_per_token "
        "experts_per_token moe_topk top_k_experts first_k_dense_replace moe_layer_freq "
        "interleave_moe_layer_step decoder_sparse_step num_nextn_predict_layers max_window_layers "
        "attention_chunk_size rotary_dim rope_dim ep_size type_vocab_size ";
    size_t n = strlen(key);

    for (const char *at = known; (at = strstr(at, key)) != NULL; at++)
        if (strchr(" |", at[-1]) && strchr(" |", at[n]))
            return false;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        if (strstr(key, sizes[i]))
            return true;
    return false;
}

/* First feature that this reader cannot express in layers; NULL: all are expressible. */
static const char *hf_strange(json_t *c)
{
    const char *name;
    json_t *value;

    static const char *const keys[] = {"hybrid_override_pattern",
                                       "mamba_d_state",
                                       "ssm_state_size",
                                       "linear_num_value_heads",
                                       "linear_attn_config",
                                       "compress_ratios",
                                       "index_topk",
                                       "o_groups",
                                       "global_head_dim",
                                       "block_configs",
                                       "attn_type_list",
                                       "hybrid_layer_pattern",
                                       "moe_layer_freq",
                                       "attention_chunk_size"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        const json_t *v = json_object_get(c, keys[i]);
        if (json_is_array(v) || (i < 10 && v && !json_is_null(v)))
            return keys[i];
    }
    json_object_foreach(c, name, value)
    {
        if (json_integer_value(value) > 0 && hf_sizes_unknown(name))
            return name;
    }
    return hf_int(c, HF_EXPERT_STEP, 1) < 1 ? "decoder_sparse_step" : NULL;
}

json_t *model_from_hf(json_t *root, const char *path, struct err *err)
{
    json_t *c = json_object_get(root, "text_config"), *list = json_array(), *mtp = NULL;
    int n = hf_int(c = c ? c : root, "num_hidden_layers|n_layer|n_layers", 0), count[4] = {0};
    const char *strange = hf_strange(c),
               *type = json_string_value(json_object_get(c, "model_type"));
    const json_t *tied = json_object_get(c, "tie_word_embeddings");

    tied = tied ? tied : json_object_get(root, "tie_word_embeddings");
    if (strange || n < 1 || n > HF_LAYERS_MAX) {
        json_decref(list);
        err_data(err,
                 strange ? "%s: \"%s\" of a Hugging Face config is not known here: write a file "
                           "like those of jobs/training/models"
                         : "%s: \"%s\" is not there: no Hugging Face config of a language model",
                 path, strange ? strange : "num_hidden_layers");
        return NULL;
    }
    for (int i = 0; i < n; i++)
        count[2 * hf_sparse(c, i) + hf_windowed(c, i)]++;
    for (int k = 0; k < 4; k++)
        if (count[k])
            json_array_append_new(list, json_pack("{s:i, s:o, s:o}", "count", count[k], "attention",
                                                  hf_attention(c, k & 1), "mlp", hf_mlp(c, k & 2)));
    if (hf_int(c, "num_nextn_predict_layers", 0) > 0)
        mtp = json_pack("{s:i, s:o, s:o}", "count", hf_int(c, "num_nextn_predict_layers", 0),
                        "attention", hf_attention(c, false), "mlp", hf_mlp(c, hf_sparse(c, n - 1)));
    json_t *out = json_pack(
        "{s:s, s:i, s:s, s:s, s:s, s:b, s:o, s:o*}", "format", "railgauge-model", "version", 1,
        "name", type ? type : "transformers", "title", type ? type : "transformers", "source", path,
        "tied_embeddings",
        tied ? json_is_true(tied) : hf_is(c, "gpt2 gemma gemma2 gemma3_text falcon bloom opt mpt"),
        "layers", list, "mtp", mtp);
    hf_put(out, "hidden", hf_int(c, "hidden_size|n_embd|d_model", 0));
    hf_put(out, "vocab", hf_int(c, "vocab_size", 0));
    hf_put(out, "positions",
           hf_is(c, "gpt2 opt gpt_bigcode") ? hf_int(c, "n_positions|max_position_embeddings", 0)
                                            : 0);
    return out;
}
