/* SPDX-License-Identifier: BSD-3-Clause */
/* nodes_text.c - the words of a job. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "place/nodes.h"

enum { PER_NODE_MAX = 1 << 10 };
#define TIMES_MAX 1e9

static const char *const where_keys[] = {"order", "nodes", "segment", "racks", "constants"};
static const char *const name_keys[] = {"model", "fabric"};

static bool one_of(const char *const *keys, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (recipe_same_key(keys[i], key))
            return true;
    return false;
}
#define ONE_OF(keys, key) one_of(keys, sizeof(keys) / sizeof(*(keys)), key)

static int set_name(const char *key, const char *name, struct err *err)
{
    size_t n = strlen(name);

    if (strchr(name, '/') || (n >= 5 && !strcmp(name + n - 5, ".json")))
        return err_usage(err, "%s=%.80s: a job names what is installed, and no files", key, name);
    return 0;
}

static int set_key(struct nodes_job *j, char *word, struct err *err)
{
    char *value = strchr(word, '=');
    struct err why;

    if (!value)
        return err_usage(err, "\"%.80s\" is no KEY=VALUE", word);
    *value++ = '\0';
    if (ONE_OF(where_keys, word))
        return err_usage(err, "%.80s: where ranks are, and files, are not for the job to say",
                         word);
    if (ONE_OF(name_keys, word) && set_name(word, value, err) < 0)
        return -1;
    if (recipe_same_key("per-node", word)) {
        if (units_int(&j->per_node, value, 1, PER_NODE_MAX, &why) < 0)
            return err_usage(err, "per_node: %s", why.text);
        return 0;
    }
    j->trains |= !recipe_same_key("spread", word);
    return job_set(&j->opts, word, value, err);
}

/* "groups of 8", "groups of 8 apart 4": the words after "groups". */
static int take_groups(struct message *msg, char **rest, struct err *err)
{
    char *of = strtok_r(NULL, " ", rest), *size = of ? strtok_r(NULL, " ", rest) : NULL;
    char *apart = size ? strtok_r(NULL, " ", rest) : NULL;
    char *stride = apart ? strtok_r(NULL, " ", rest) : NULL;
    struct err why;

    if (!size || strcmp(of, "of") || (apart && (strcmp(apart, "apart") || !stride)))
        return err_usage(err, "%s: \"groups\" goes on with \"of N\" or \"of N apart S\"",
                         msg->label);
    if (units_int(&msg->span.size, size, 2, LAYOUT_RANKS_MAX, &why) < 0 ||
        (stride && units_int(&msg->span.stride, stride, 1, LAYOUT_RANKS_MAX, &why) < 0))
        return err_usage(err, "%s: groups: %s", msg->label, why.text);
    return 0;
}

static int take_op(struct message *msg, const char *word, struct err *err)
{
    int op = op_find(word);

    *msg = (struct message){.count = 1, .span = {0, 1}};
    if (!strcmp(word, "ep_dispatch") || !strcmp(word, "ep_combine")) {
        msg->kernel = !strcmp(word, "ep_dispatch") ? EP_DISPATCH : EP_COMBINE;
        msg->label = msg->kernel == EP_DISPATCH ? "ep_dispatch" : "ep_combine";
        op = OP_ALL_TO_ALL;
    } else if (op < 0 || op_is_pair((enum op)op)) {
        return err_usage(err,
                         "\"%.80s\" is neither KEY=VALUE nor a collective (known: all_gather "
                         "reduce_scatter all_to_all all_reduce broadcast reduce sendrecv "
                         "ep_dispatch ep_combine)",
                         word);
    } else {
        msg->label = op_name((enum op)op);
    }
    msg->op = (enum op)op;
    return 0;
}

/* OP SIZE [x TIMES] [groups of N [apart S]] */
static int take_collective(struct nodes_job *j, const char *word, char **rest, struct err *err)
{
    struct message msg;
    struct err why;
    size_t bytes;

    if (take_op(&msg, word, err) < 0)
        return -1;
    if (j->mix.messages == TRAFFIC_MAX)
        return err_usage(err, "%s: more than %d collectives", msg.label, TRAFFIC_MAX);
    word = strtok_r(NULL, " ", rest);
    if (!word || units_bytes(&bytes, word, &why) < 0)
        return err_usage(err, "%s: %s", msg.label, word ? why.text : "its size is missing");
    msg.bytes = (double)bytes;
    word = strtok_r(NULL, " ", rest);
    if (word && !strcmp(word, "x")) {
        word = strtok_r(NULL, " ", rest);
        if (!word || units_double(&msg.count, word, 0, TIMES_MAX, &why) < 0)
            return err_usage(err, "%s: x: %s", msg.label, word ? why.text : "how many times?");
        word = strtok_r(NULL, " ", rest);
    }
    if (word && !strcmp(word, "groups")) {
        if (take_groups(&msg, rest, err) < 0)
            return -1;
        word = strtok_r(NULL, " ", rest);
    }
    if (word)
        return err_usage(err, "%s: \"%.80s\" is not understood", msg.label, word);
    j->mix.message[j->mix.messages++] = msg;
    return 0;
}

static int take_clause(struct nodes_job *j, char *clause, struct err *err)
{
    char *rest = NULL, *word = strtok_r(clause, " ", &rest);

    if (word && !strchr(word, '='))
        return take_collective(j, word, &rest, err);
    for (; word; word = strtok_r(NULL, " ", &rest))
        if (set_key(j, word, err) < 0)
            return -1;
    return 0;
}

/* Blanks become spaces, ends of lines ';'. */
static int plain(char *text, struct err *err)
{
    for (char *c = text; *c; c++) {
        if (*c == '\t' || *c == '\r')
            *c = ' ';
        if (*c == '\n')
            *c = ';';
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return err_usage(err, "character %ld of the job is the control character 0x%02x",
                             (long)(c - text + 1), (unsigned)*c);
    }
    return 0;
}

int nodes_job_words(struct nodes_job *j, const char *text, struct err *err)
{
    size_t length = strnlen(text, NODES_TEXT_MAX + 1);

    memset(j, 0, sizeof(*j));
    job_defaults(&j->opts);
    j->opts.model = NULL;
    if (length > NODES_TEXT_MAX)
        return err_usage(err, "the job has more than %d characters", NODES_TEXT_MAX);
    j->text = mem_strdup(text);
    if (plain(j->text, err) < 0)
        return -1;
    char *rest = NULL;
    for (char *c = strtok_r(j->text, ";", &rest); c; c = strtok_r(NULL, ";", &rest))
        if (take_clause(j, c, err) < 0)
            return -1;
    if (j->trains && j->mix.messages)
        return err_usage(err,
                         "a job is a model or collectives, and here are keys of a model "
                         "beside %s",
                         j->mix.message[0].label);
    if (j->trains ? !j->opts.model : !j->mix.messages)
        return err_usage(err,
                         "the job names no %s: \"model=llama3.1-8b layout=tp=4,dp=auto\" or "
                         "\"all_gather 64M x 12; all_to_all 8M groups of 8\"",
                         j->trains ? "model" : "model and no collective");
    return 0;
}
