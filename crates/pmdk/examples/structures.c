// SPDX-License-Identifier: Apache-2.0

/* Persistent structures on libpmemobj, to be killed at any time: a B-tree, a red-black tree, a skip
 * list, a hash table, a list.
 *
 *     cc structures.c -lpmemobj -pthread -o structures
 *     ./structures run 1 500 2 btree:/dev/shm/pool   # 500 steps of each of two threads; continues
 *                                                    # after a kill
 *     ./structures check 1 btree:/dev/shm/pool       # compares with the expected state
 *     ./structures follow FILE btree:/dev/shm/pool   # the transactions of a file: lines `p KEY`,
 *                                                    # `u KEY OFFSET BYTES`, `r KEY`, and `c` or `a`
 *
 * Several pools may be named. Step n of a thread depends on the seed and n alone, so a check does the
 * same in ordinary memory and compares. Each thread has a private structure and a step count in the
 * pool, which change in the same transaction. (The operations of the list are atomic by themselves.)
 * After each step a line is printed: pool, thread, number of steps. */
#include <inttypes.h>
#include <libpmemobj.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAYOUT "structures"
#define POOL_BYTES ((size_t)32 << 20)
enum { MOST_POOLS = 4, MOST_THREADS = 4, KEYS = 96, VALUE = 64 };
enum { TYPE_ROOT = 1, TYPE_MAP, TYPE_NODE, TYPE_BUCKETS, TYPE_VALUE };

struct value {
    uint8_t bytes[VALUE];
};
struct part {
    uint64_t done;
    PMEMoid map;
};
struct root {
    uint64_t kind;
    struct part parts[MOST_THREADS];
};
/* The results of a walk. */
struct found {
    uint64_t nodes, buckets, maps, keys;
    bool present[KEYS];
    PMEMoid values[KEYS];
    const char *wrong;
};

#define AT(type, oid) ((struct type *)pmemobj_direct(oid))
/* Announces changes to an object's fields. */
#define CHANGE(pointer) pmemobj_tx_add_range_direct(pointer, sizeof *(pointer))

static void note(struct found *found, uint64_t key, PMEMoid value) {
    if (key >= KEYS || found->present[key]) {
        found->wrong = "a key is there twice, or is none";
        return;
    }
    found->present[key] = true;
    found->values[key] = value;
    found->keys++;
}

/* ---- B-tree, 3 to 7 items a node ---- */

enum { LEAST = 3, MOST = 7 };
struct item {
    uint64_t key;
    PMEMoid value;
};
struct bnode {
    uint64_t count;
    struct item items[MOST];
    PMEMoid slots[MOST + 1]; /* all null in a leaf */
};
struct btree {
    PMEMoid root;
};

static bool leaf(const struct bnode *node) {
    return OID_IS_NULL(node->slots[0]);
}

static uint64_t place_of(const struct bnode *node, uint64_t key) {
    uint64_t n = 0;
    while (n < node->count && node->items[n].key < key) n++;
    return n;
}

/* Splits the full child `n` of a node that is not full; both may be changed. */
static void split(struct bnode *node, uint64_t n) {
    struct bnode *left = AT(bnode, node->slots[n]);
    CHANGE(left);
    PMEMoid oid = pmemobj_tx_zalloc(sizeof *left, TYPE_NODE);
    struct bnode *right = AT(bnode, oid);
    right->count = LEAST;
    memcpy(right->items, left->items + LEAST + 1, LEAST * sizeof(struct item));
    memcpy(right->slots, left->slots + LEAST + 1, (LEAST + 1) * sizeof(PMEMoid));
    left->count = LEAST;
    memmove(node->items + n + 1, node->items + n, (node->count - n) * sizeof(struct item));
    memmove(node->slots + n + 2, node->slots + n + 1, (node->count - n) * sizeof(PMEMoid));
    node->items[n] = left->items[LEAST];
    node->slots[n + 1] = oid;
    node->count++;
}

static void btree_insert(void *map, uint64_t key, PMEMoid value) {
    struct btree *tree = map;
    if (OID_IS_NULL(tree->root) || AT(bnode, tree->root)->count == MOST) {
        PMEMoid oid = pmemobj_tx_zalloc(sizeof(struct bnode), TYPE_NODE);
        struct bnode *root = AT(bnode, oid);
        root->slots[0] = tree->root;
        if (!OID_IS_NULL(tree->root)) split(root, 0);
        CHANGE(tree);
        tree->root = oid;
    }
    struct bnode *node = AT(bnode, tree->root);
    while (!leaf(node)) {
        uint64_t n = place_of(node, key);
        if (AT(bnode, node->slots[n])->count == MOST) {
            CHANGE(node);
            split(node, n);
            n += node->items[n].key < key;
        }
        node = AT(bnode, node->slots[n]);
    }
    uint64_t n = place_of(node, key);
    CHANGE(node);
    memmove(node->items + n + 1, node->items + n, (node->count - n) * sizeof(struct item));
    node->items[n] = (struct item){key, value};
    node->count++;
}

static PMEMoid *btree_find(void *map, uint64_t key) {
    for (struct bnode *node = AT(bnode, ((struct btree *)map)->root); node != NULL;) {
        uint64_t n = place_of(node, key);
        if (n < node->count && node->items[n].key == key) return &node->items[n].value;
        node = AT(bnode, node->slots[n]);
    }
    return NULL;
}

/* Joins the children `n` and `n + 1` of a node, and the item between them. */
static void join(struct bnode *node, uint64_t n) {
    struct bnode *left = AT(bnode, node->slots[n]), *right = AT(bnode, node->slots[n + 1]);
    CHANGE(node);
    CHANGE(left);
    left->items[left->count] = node->items[n];
    memcpy(left->items + left->count + 1, right->items, right->count * sizeof(struct item));
    memcpy(left->slots + left->count + 1, right->slots, (right->count + 1) * sizeof(PMEMoid));
    left->count += 1 + right->count;
    pmemobj_tx_free(node->slots[n + 1]);
    memmove(node->items + n, node->items + n + 1, (node->count - n - 1) * sizeof(struct item));
    memmove(node->slots + n + 1, node->slots + n + 2, (node->count - n - 1) * sizeof(PMEMoid));
    node->slots[node->count] = OID_NULL;
    node->count--;
}

/* Child `n`, after it has got a further item if it had the fewest. */
static struct bnode *strengthen(struct bnode *node, uint64_t n) {
    struct bnode *child = AT(bnode, node->slots[n]);
    if (child->count > LEAST) return child;
    struct bnode *left = n > 0 ? AT(bnode, node->slots[n - 1]) : NULL;
    struct bnode *right = n < node->count ? AT(bnode, node->slots[n + 1]) : NULL;
    if (left != NULL && left->count > LEAST) {
        CHANGE(node);
        CHANGE(child);
        CHANGE(left);
        memmove(child->items + 1, child->items, child->count * sizeof(struct item));
        memmove(child->slots + 1, child->slots, (child->count + 1) * sizeof(PMEMoid));
        child->items[0] = node->items[n - 1];
        child->slots[0] = left->slots[left->count];
        child->count++;
        node->items[n - 1] = left->items[left->count - 1];
        left->slots[left->count] = OID_NULL;
        left->count--;
        return child;
    }
    if (right != NULL && right->count > LEAST) {
        CHANGE(node);
        CHANGE(child);
        CHANGE(right);
        child->items[child->count] = node->items[n];
        child->slots[child->count + 1] = right->slots[0];
        child->count++;
        node->items[n] = right->items[0];
        memmove(right->items, right->items + 1, (right->count - 1) * sizeof(struct item));
        memmove(right->slots, right->slots + 1, right->count * sizeof(PMEMoid));
        right->slots[right->count] = OID_NULL;
        right->count--;
        return child;
    }
    if (left != NULL) {
        join(node, n - 1);
        return left;
    }
    join(node, n);
    return child;
}

static void btree_remove(void *map, uint64_t key) {
    struct btree *tree = map;
    struct bnode *node = AT(bnode, tree->root);
    while (!leaf(node)) {
        uint64_t n = place_of(node, key);
        if (n == node->count || node->items[n].key != key) {
            node = strengthen(node, n);
            continue;
        }
        struct bnode *left = AT(bnode, node->slots[n]), *right = AT(bnode, node->slots[n + 1]);
        if (left->count > LEAST || right->count > LEAST) {
            bool from_left = left->count > LEAST;
            struct bnode *at = from_left ? left : right;
            while (!leaf(at)) at = AT(bnode, at->slots[from_left ? at->count : 0]);
            struct item other = at->items[from_left ? at->count - 1 : 0];
            CHANGE(node);
            node->items[n] = other;
            key = other.key; /* it leaves its old place */
            node = from_left ? strengthen(node, n) : strengthen(node, n + 1);
            continue;
        }
        join(node, n);
        node = left;
    }
    uint64_t n = place_of(node, key);
    CHANGE(node);
    memmove(node->items + n, node->items + n + 1, (node->count - n - 1) * sizeof(struct item));
    node->count--;
    struct bnode *root = AT(bnode, tree->root);
    if (root->count == 0) {
        PMEMoid old = tree->root;
        CHANGE(tree);
        tree->root = root->slots[0];
        pmemobj_tx_free(old);
    }
}

/* Returns the depth of the leaves. */
static int btree_node(PMEMoid oid, bool top, uint64_t low, uint64_t high, struct found *found) {
    const struct bnode *node = AT(bnode, oid);
    found->nodes++;
    if (node->count > MOST || node->count < (top ? 1 : LEAST)) found->wrong = "a node has too many items, or too few";
    if (found->wrong != NULL) return 0;
    int depth = -1;
    for (uint64_t n = 0; n <= node->count && found->wrong == NULL; n++) {
        uint64_t above = n > 0 ? node->items[n - 1].key + 1 : low, below = n < node->count ? node->items[n].key : high;
        if (above > below || (n < node->count && below >= high)) found->wrong = "keys are not in order";
        if (n < node->count) note(found, node->items[n].key, node->items[n].value);
        int deep = leaf(node) || found->wrong != NULL ? 0 : 1 + btree_node(node->slots[n], false, above, below, found);
        if (depth >= 0 && deep != depth) found->wrong = "leaves are not equally deep";
        depth = deep;
    }
    return depth;
}

static void btree_walk(void *map, struct found *found) {
    struct btree *tree = map;
    if (!OID_IS_NULL(tree->root)) btree_node(tree->root, true, 0, UINT64_MAX, found);
}

/* ---- red-black tree: a null child is black, too ---- */

struct rnode {
    uint64_t key;
    PMEMoid value, parent, children[2];
    uint64_t red;
};
struct rbtree {
    PMEMoid root;
};

static bool is_red(PMEMoid oid) {
    return !OID_IS_NULL(oid) && AT(rnode, oid)->red;
}

static void paint(PMEMoid oid, bool red) {
    struct rnode *node = AT(rnode, oid);
    if (node->red == red) return;
    pmemobj_tx_add_range_direct(&node->red, sizeof node->red);
    node->red = red;
}

static int side_of(PMEMoid oid) {
    return OID_EQUALS(AT(rnode, AT(rnode, oid)->parent)->children[1], oid);
}

/* Puts `fresh`, which may be null, in the place of `old`. */
static void replace(struct rbtree *tree, PMEMoid old, PMEMoid fresh) {
    PMEMoid parent = AT(rnode, old)->parent;
    PMEMoid *link = OID_IS_NULL(parent) ? &tree->root : &AT(rnode, parent)->children[side_of(old)];
    CHANGE(link);
    *link = fresh;
    if (OID_IS_NULL(fresh)) return;
    CHANGE(AT(rnode, fresh));
    AT(rnode, fresh)->parent = parent;
}

/* Rotates a node to this side: the child of the other side takes its place. */
static void rotate(struct rbtree *tree, PMEMoid oid, int side) {
    struct rnode *node = AT(rnode, oid);
    PMEMoid up = node->children[!side];
    struct rnode *child = AT(rnode, up);
    CHANGE(node);
    CHANGE(child);
    PMEMoid inner = child->children[side];
    replace(tree, oid, up);
    node->children[!side] = inner;
    if (!OID_IS_NULL(inner)) {
        CHANGE(AT(rnode, inner));
        AT(rnode, inner)->parent = oid;
    }
    child->children[side] = oid;
    node->parent = up;
}

static void rbtree_insert(void *map, uint64_t key, PMEMoid value) {
    struct rbtree *tree = map;
    PMEMoid oid = pmemobj_tx_zalloc(sizeof(struct rnode), TYPE_NODE), parent = OID_NULL;
    PMEMoid *link = &tree->root;
    while (!OID_IS_NULL(*link)) {
        parent = *link;
        link = &AT(rnode, parent)->children[key > AT(rnode, parent)->key];
    }
    *AT(rnode, oid) = (struct rnode){.key = key, .value = value, .parent = parent, .red = 1};
    CHANGE(link);
    *link = oid;
    for (PMEMoid at = oid; is_red(parent = AT(rnode, at)->parent);) {
        PMEMoid grand = AT(rnode, parent)->parent;
        int side = side_of(parent);
        PMEMoid uncle = AT(rnode, grand)->children[!side];
        if (is_red(uncle)) {
            paint(parent, false);
            paint(uncle, false);
            paint(grand, true);
            at = grand;
            continue;
        }
        if (side_of(at) != side) {
            rotate(tree, parent, side);
            at = parent;
            parent = AT(rnode, at)->parent;
        }
        paint(parent, false);
        paint(grand, true);
        rotate(tree, grand, !side);
    }
    paint(tree->root, false);
}

static PMEMoid rbtree_node_of(struct rbtree *tree, uint64_t key) {
    PMEMoid at = tree->root;
    while (!OID_IS_NULL(at) && AT(rnode, at)->key != key) at = AT(rnode, at)->children[key > AT(rnode, at)->key];
    return at;
}

static PMEMoid *rbtree_find(void *map, uint64_t key) {
    PMEMoid oid = rbtree_node_of(map, key);
    return OID_IS_NULL(oid) ? NULL : &AT(rnode, oid)->value;
}

static void rbtree_remove(void *map, uint64_t key) {
    struct rbtree *tree = map;
    PMEMoid oid = rbtree_node_of(tree, key);
    struct rnode *node = AT(rnode, oid);
    if (!OID_IS_NULL(node->children[0]) && !OID_IS_NULL(node->children[1])) {
        /* The node of the next key takes its place. */
        PMEMoid next = node->children[1];
        while (!OID_IS_NULL(AT(rnode, next)->children[0])) next = AT(rnode, next)->children[0];
        CHANGE(node);
        node->key = AT(rnode, next)->key;
        node->value = AT(rnode, next)->value;
        oid = next;
        node = AT(rnode, oid);
    }
    PMEMoid child = node->children[OID_IS_NULL(node->children[0])];
    if (!OID_IS_NULL(child)) {
        /* It is red, and the node is black. */
        replace(tree, oid, child);
        paint(child, false);
        pmemobj_tx_free(oid);
        return;
    }
    /* A black node without children is missing on its path: an ancestor has to compensate for
     * it. */
    for (PMEMoid at = oid; !is_red(at) && !OID_IS_NULL(AT(rnode, at)->parent);) {
        PMEMoid parent = AT(rnode, at)->parent;
        int side = side_of(at);
        PMEMoid brother = AT(rnode, parent)->children[!side];
        if (is_red(brother)) {
            paint(brother, false);
            paint(parent, true);
            rotate(tree, parent, side);
            brother = AT(rnode, parent)->children[!side];
        }
        if (!is_red(AT(rnode, brother)->children[0]) && !is_red(AT(rnode, brother)->children[1])) {
            paint(brother, true);
            at = parent;
            if (is_red(at)) {
                paint(at, false);
                break;
            }
            continue;
        }
        if (!is_red(AT(rnode, brother)->children[!side])) {
            paint(AT(rnode, brother)->children[side], false);
            paint(brother, true);
            rotate(tree, brother, !side);
            brother = AT(rnode, parent)->children[!side];
        }
        paint(brother, is_red(parent));
        paint(parent, false);
        paint(AT(rnode, brother)->children[!side], false);
        rotate(tree, parent, side);
        break;
    }
    replace(tree, oid, OID_NULL);
    pmemobj_tx_free(oid);
}

/* Returns the number of black nodes on any path down. */
static int rbtree_node(PMEMoid oid, PMEMoid parent, uint64_t low, uint64_t high, struct found *found) {
    if (OID_IS_NULL(oid) || found->wrong != NULL) return 0;
    const struct rnode *node = AT(rnode, oid);
    found->nodes++;
    note(found, node->key, node->value);
    if (!OID_EQUALS(node->parent, parent)) found->wrong = "a node's parent is another one";
    if (node->key < low || node->key >= high) found->wrong = "keys are not in order";
    if (node->red && (is_red(node->children[0]) || is_red(node->children[1]))) found->wrong = "a red node has a red child";
    int left = rbtree_node(node->children[0], oid, low, node->key, found);
    int right = rbtree_node(node->children[1], oid, node->key + 1, high, found);
    if (left != right && found->wrong == NULL) found->wrong = "ways down have different numbers of black nodes";
    return left + !node->red;
}

static void rbtree_walk(void *map, struct found *found) {
    rbtree_node(((struct rbtree *)map)->root, OID_NULL, 0, UINT64_MAX, found);
}

/* ---- skip list ---- */

enum { LEVELS = 6 };
struct snode {
    uint64_t key;
    PMEMoid value, next[LEVELS];
};
struct skiplist {
    PMEMoid next[LEVELS];
};

static int level_of(uint64_t key) {
    uint64_t drawn = key * UINT64_C(0x9E3779B97F4A7C15) >> 48;
    int level = 1;
    while (level < LEVELS && (drawn >> (2 * level) & 3) == 0) level++;
    return level;
}

/* The links of each level past `key`. */
static void links(struct skiplist *list, uint64_t key, PMEMoid *way[LEVELS]) {
    PMEMoid *next = list->next;
    for (int level = LEVELS - 1; level >= 0; level--) {
        while (!OID_IS_NULL(next[level]) && AT(snode, next[level])->key < key) next = AT(snode, next[level])->next;
        way[level] = &next[level];
    }
}

static void skiplist_insert(void *map, uint64_t key, PMEMoid value) {
    PMEMoid *way[LEVELS];
    links(map, key, way);
    PMEMoid oid = pmemobj_tx_zalloc(sizeof(struct snode), TYPE_NODE);
    struct snode *node = AT(snode, oid);
    node->key = key;
    node->value = value;
    for (int level = 0; level < level_of(key); level++) {
        node->next[level] = *way[level];
        CHANGE(way[level]);
        *way[level] = oid;
    }
}

static PMEMoid *skiplist_find(void *map, uint64_t key) {
    PMEMoid *way[LEVELS];
    links(map, key, way);
    struct snode *node = AT(snode, *way[0]);
    return node != NULL && node->key == key ? &node->value : NULL;
}

static void skiplist_remove(void *map, uint64_t key) {
    PMEMoid *way[LEVELS];
    links(map, key, way);
    PMEMoid oid = *way[0];
    for (int level = 0; level < level_of(key); level++) {
        CHANGE(way[level]);
        *way[level] = AT(snode, oid)->next[level];
    }
    pmemobj_tx_free(oid);
}

static void skiplist_walk(void *map, struct found *found) {
    struct skiplist *list = map;
    for (int level = 0; level < LEVELS; level++) {
        uint64_t least = 0;
        for (PMEMoid at = list->next[level]; !OID_IS_NULL(at) && found->wrong == NULL; at = AT(snode, at)->next[level]) {
            const struct snode *node = AT(snode, at);
            if (node->key < least || node->key >= KEYS) found->wrong = "keys are not in order";
            if (level > 0 && (level_of(node->key) <= level || !found->present[node->key % KEYS])) found->wrong = "a level has another's key";
            least = node->key + 1;
            if (level > 0) continue;
            found->nodes++;
            note(found, node->key, node->value);
        }
    }
}

/* ---- hash table, which grows and shrinks ---- */

struct hnode {
    uint64_t key;
    PMEMoid value, next;
};
struct hashmap {
    uint64_t count, buckets;
    PMEMoid table;
};

static PMEMoid *bucket(PMEMoid table, uint64_t buckets, uint64_t key) {
    return &((PMEMoid *)pmemobj_direct(table))[(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) % buckets];
}

static void rehash(struct hashmap *map, uint64_t buckets) {
    PMEMoid table = pmemobj_tx_zalloc(buckets * sizeof(PMEMoid), TYPE_BUCKETS);
    for (uint64_t n = 0; n < map->buckets; n++) {
        PMEMoid *old = &((PMEMoid *)pmemobj_direct(map->table))[n];
        while (!OID_IS_NULL(*old)) {
            PMEMoid oid = *old;
            struct hnode *node = AT(hnode, oid);
            PMEMoid *fresh = bucket(table, buckets, node->key);
            CHANGE(old);
            CHANGE(fresh);
            CHANGE(&node->next);
            *old = node->next;
            node->next = *fresh;
            *fresh = oid;
        }
    }
    if (!OID_IS_NULL(map->table)) pmemobj_tx_free(map->table);
    CHANGE(map);
    map->table = table;
    map->buckets = buckets;
}

static void hashmap_insert(void *it, uint64_t key, PMEMoid value) {
    struct hashmap *map = it;
    if (map->count >= map->buckets * 2) rehash(map, map->buckets == 0 ? 4 : map->buckets * 2);
    PMEMoid *link = bucket(map->table, map->buckets, key);
    PMEMoid oid = pmemobj_tx_alloc(sizeof(struct hnode), TYPE_NODE);
    *AT(hnode, oid) = (struct hnode){key, value, *link};
    CHANGE(link);
    *link = oid;
    CHANGE(&map->count);
    map->count++;
}

static PMEMoid *hashmap_link(struct hashmap *map, uint64_t key) {
    if (map->buckets == 0) return NULL;
    PMEMoid *link = bucket(map->table, map->buckets, key);
    while (!OID_IS_NULL(*link) && AT(hnode, *link)->key != key) link = &AT(hnode, *link)->next;
    return OID_IS_NULL(*link) ? NULL : link;
}

static PMEMoid *hashmap_find(void *it, uint64_t key) {
    PMEMoid *link = hashmap_link(it, key);
    return link == NULL ? NULL : &AT(hnode, *link)->value;
}

static void hashmap_remove(void *it, uint64_t key) {
    struct hashmap *map = it;
    PMEMoid *link = hashmap_link(map, key), oid = *link;
    CHANGE(link);
    *link = AT(hnode, oid)->next;
    pmemobj_tx_free(oid);
    CHANGE(&map->count);
    map->count--;
    if (map->buckets > 4 && map->count < map->buckets / 2) rehash(map, map->buckets / 2);
}

static void hashmap_walk(void *it, struct found *found) {
    struct hashmap *map = it;
    found->buckets += map->buckets > 0;
    for (uint64_t n = 0; n < map->buckets; n++) {
        for (PMEMoid at = ((PMEMoid *)pmemobj_direct(map->table))[n]; !OID_IS_NULL(at) && found->wrong == NULL; at = AT(hnode, at)->next) {
            const struct hnode *node = AT(hnode, at);
            found->nodes++;
            note(found, node->key, node->value);
            if (bucket(map->table, map->buckets, node->key) != &((PMEMoid *)pmemobj_direct(map->table))[n])
                found->wrong = "a key is in another bucket";
        }
    }
    if (map->count != found->keys) found->wrong = "the number of keys is another one";
}

/* ---- the five structures ---- */

struct kind {
    const char *name;
    size_t bytes;
    void (*insert)(void *map, uint64_t key, PMEMoid value);
    PMEMoid *(*find)(void *map, uint64_t key);
    void (*remove)(void *map, uint64_t key);
    void (*walk)(void *map, struct found *found);
};
static const struct kind KINDS[] = {
    {"btree", sizeof(struct btree), btree_insert, btree_find, btree_remove, btree_walk},
    {"rbtree", sizeof(struct rbtree), rbtree_insert, rbtree_find, rbtree_remove, rbtree_walk},
    {"skiplist", sizeof(struct skiplist), skiplist_insert, skiplist_find, skiplist_remove, skiplist_walk},
    {"hashmap", sizeof(struct hashmap), hashmap_insert, hashmap_find, hashmap_remove, hashmap_walk},
    {"list", 0, NULL, NULL, NULL, NULL},
};
enum { KIND_COUNT = sizeof KINDS / sizeof *KINDS, LIST = KIND_COUNT - 1 };

/* ---- the steps ---- */

struct step {
    uint64_t key, drawn;
    enum { PUT, CHANGE_PART, REMOVE } what;
    bool aborts, fails;
};

static uint64_t mix(uint64_t x) {
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static struct step step_of(uint64_t seed, uint64_t thread, uint64_t number) {
    uint64_t drawn = mix(mix(seed * MOST_THREADS + thread) + number);
    /* Insertions and removals alternate in waves, so that structures grow and shrink. */
    uint64_t way = drawn % 16, grows = number / 150 % 2 == 0;
    return (struct step){
        .key = drawn >> 8 & 0xFFFF, .drawn = mix(drawn),
        .what = way < (grows ? 9u : 4u) ? PUT : way < (grows ? 12u : 7u) ? CHANGE_PART : REMOVE,
        .aborts = seed % 2 != 0 && (drawn >> 24) % 8 == 0,
        .fails = seed % 2 != 0 && (drawn >> 32) % 8 == 0,
    };
}

static struct value value_of(const struct step *step) {
    struct value value;
    for (int n = 0; n < VALUE; n++) value.bytes[n] = (uint8_t)(step->drawn >> (n % 8 * 8)) + (uint8_t)n;
    return value;
}

/* The part of a value that a step changes. */
static void part_of(const struct step *step, size_t *from, size_t *bytes) {
    *from = step->drawn % (VALUE - 1);
    *bytes = 1 + (step->drawn >> 8) % (VALUE - *from);
}

static void change(const struct kind *kind, void *map, const struct step *step) {
    PMEMoid *at = kind->find(map, step->key % KEYS);
    struct value fresh = value_of(step);
    if (step->what == PUT && at == NULL) {
        PMEMoid oid = pmemobj_tx_alloc(sizeof fresh, TYPE_VALUE);
        *AT(value, oid) = fresh;
        kind->insert(map, step->key % KEYS, oid);
    } else if (step->what == PUT) {
        PMEMoid old = *at, oid = pmemobj_tx_alloc(sizeof fresh, TYPE_VALUE);
        *AT(value, oid) = fresh;
        CHANGE(at);
        *at = oid;
        pmemobj_tx_free(old);
    } else if (at != NULL && step->what == CHANGE_PART) {
        size_t from, bytes;
        part_of(step, &from, &bytes);
        uint8_t *old = AT(value, *at)->bytes;
        /* In two overlapping parts. */
        pmemobj_tx_add_range(*at, from, (bytes + 1) / 2);
        pmemobj_tx_add_range_direct(old + from, bytes);
        memcpy(old + from, fresh.bytes + from, bytes);
    } else if (at != NULL) {
        PMEMoid old = *at;
        kind->remove(map, step->key % KEYS);
        pmemobj_tx_free(old);
    }
}

/* A step as a transaction, in which the structure's transaction is nested. With an odd seed some
 * are aborted before, by the program or by a failed allocation. */
static bool perform(PMEMobjpool *pop, const struct kind *kind, struct part *part, const struct step *step) {
    volatile bool whole = false;
    for (volatile int attempt = step->aborts + step->fails; attempt >= 0; attempt--) {
        TX_BEGIN(pop) {
            pmemobj_tx_add_range_direct(&part->done, sizeof part->done);
            part->done++;
            TX_BEGIN(pop) {
                change(kind, pmemobj_direct(part->map), step);
                if (attempt > 0 && step->fails) pmemobj_tx_alloc(POOL_BYTES, TYPE_VALUE);
                if (attempt > 0) pmemobj_tx_abort(ECANCELED);
            }
            TX_END
        }
        TX_ONCOMMIT {
            whole = true;
        }
        TX_END
    }
    return whole;
}

/* The same in ordinary memory. */
struct model {
    bool present[KEYS];
    struct value values[KEYS];
};

static void follow(struct model *model, const struct step *step) {
    uint64_t key = step->key % KEYS;
    struct value fresh = value_of(step);
    size_t from, bytes;
    part_of(step, &from, &bytes);
    if (step->what == PUT) model->values[key] = fresh;
    if (step->what == CHANGE_PART) memcpy(model->values[key].bytes + from, fresh.bytes + from, bytes);
    model->present[key] = step->what == PUT || (model->present[key] && step->what == CHANGE_PART);
}

/* ---- the list of libpmemobj, with atomic operations outside of transactions ---- */

struct lnode;
TOID_DECLARE(struct lnode, TYPE_NODE);
struct lnode {
    uint64_t number;
    POBJ_LIST_ENTRY(struct lnode) entry;
};
POBJ_LIST_HEAD(list_head, struct lnode);

static int set_number(PMEMobjpool *pop, void *node, void *number) {
    ((struct lnode *)node)->number = *(uint64_t *)number;
    pmemobj_persist(pop, node, sizeof(struct lnode));
    return 0;
}

enum { LONGEST = 20 };

/* Step `n` inserts number n in front, and removes the last one of a long list. */
static bool list_step(PMEMobjpool *pop, struct part *part) {
    struct list_head *head = pmemobj_direct(part->map);
    uint64_t number = part->done;
    size_t at = offsetof(struct lnode, entry);
    uint64_t length = 0, newest = UINT64_MAX;
    PMEMoid first = head->pe_first.oid, last = OID_NULL;
    if (!OID_IS_NULL(first)) {
        newest = AT(lnode, first)->number;
        last = AT(lnode, first)->entry.pe_prev.oid;
        length = newest - AT(lnode, last)->number + (newest != number);
    }
    if (newest != number && OID_IS_NULL(pmemobj_list_insert_new(pop, at, head, OID_NULL, POBJ_LIST_DEST_HEAD, sizeof(struct lnode), TYPE_NODE, set_number, &number)))
        return false;
    if (length >= LONGEST && pmemobj_list_remove(pop, at, head, last, 1) != 0) return false;
    volatile bool whole = false;
    TX_BEGIN(pop) {
        pmemobj_tx_add_range_direct(&part->done, sizeof part->done);
        part->done++;
    }
    TX_ONCOMMIT {
        whole = true;
    }
    TX_END
    return whole;
}

static void list_check(const struct part *part, struct found *found) {
    const struct list_head *head = pmemobj_direct(part->map);
    PMEMoid first = head->pe_first.oid;
    uint64_t number = 0;
    for (PMEMoid at = first; !OID_IS_NULL(at) && found->wrong == NULL;) {
        const struct lnode *node = AT(lnode, at);
        PMEMoid next = node->entry.pe_next.oid;
        if (found->nodes == 0 && node->number != part->done && node->number + 1 != part->done) found->wrong = "the first one is another number";
        if (found->nodes > 0 && node->number + 1 != number) found->wrong = "numbers do not follow each other";
        if (!OID_EQUALS(AT(lnode, next)->entry.pe_prev.oid, at)) found->wrong = "links do not lead back";
        number = node->number;
        found->nodes++;
        at = OID_EQUALS(next, first) ? OID_NULL : next;
    }
    if (found->wrong == NULL && part->done > LONGEST && (found->nodes < LONGEST || found->nodes > LONGEST + 1))
        found->wrong = "it is too long, or too short";
}

/* ---- programs ---- */

struct task {
    const struct kind *kind;
    const char *path;
    PMEMobjpool *pop;
    struct root *root;
    uint64_t seed, steps;
    int pool, thread;
};

static void die(const char *path, const char *what, const char *why) {
    fprintf(stderr, "%s: %s: %s\n", path, what, why);
    exit(1);
}

static void *work(void *argument) {
    struct task *task = argument;
    struct part *part = &task->root->parts[task->thread];
    if (OID_IS_NULL(part->map)) {
        TX_BEGIN(task->pop) {
            pmemobj_tx_add_range_direct(part, sizeof *part);
            size_t bytes = task->kind->bytes;
            part->map = pmemobj_tx_zalloc(bytes > 0 ? bytes : sizeof(struct list_head), TYPE_MAP);
        }
        TX_END
    }
    while (part->done < task->steps) {
        struct step step = step_of(task->seed, (uint64_t)task->thread, part->done);
        bool whole = task->kind->bytes > 0 ? perform(task->pop, task->kind, part, &step) : list_step(task->pop, part);
        if (!whole) die(task->path, "a step has failed", pmemobj_errormsg());
        dprintf(STDOUT_FILENO, "%d %d %" PRIu64 "\n", task->pool, task->thread, part->done);
    }
    return NULL;
}

/* Opens a pool `KIND:PATH`, or creates it. */
static struct task task_of(const char *name, bool create) {
    struct task task = {0};
    const char *colon = strchr(name, ':');
    for (int n = 0; n < KIND_COUNT && colon != NULL; n++)
        if (strlen(KINDS[n].name) == (size_t)(colon - name) && strncmp(KINDS[n].name, name, (size_t)(colon - name)) == 0) task.kind = &KINDS[n];
    if (task.kind == NULL) die(name, "no pool", "KIND:PATH, and KIND is btree, rbtree, skiplist, hashmap or list");
    task.path = colon + 1;
    if (access(task.path, F_OK) == 0)
        task.pop = pmemobj_open(task.path, LAYOUT);
    else if (create)
        task.pop = pmemobj_create(task.path, LAYOUT, POOL_BYTES, 0600);
    if (task.pop == NULL) die(task.path, "can't be opened", pmemobj_errormsg());
    PMEMoid root = pmemobj_root(task.pop, sizeof(struct root));
    if (OID_IS_NULL(root)) die(task.path, "no root", pmemobj_errormsg());
    task.root = pmemobj_direct(root);
    return task;
}

static int run(int count, char **names, uint64_t seed, uint64_t steps, int threads) {
    struct task tasks[MOST_POOLS * MOST_THREADS];
    pthread_t ids[MOST_POOLS * MOST_THREADS];
    int all = 0;
    for (int pool = 0; pool < count; pool++) {
        struct task task = task_of(names[pool], true);
        task.seed = seed;
        task.steps = steps;
        task.pool = pool;
        for (task.thread = 0; task.thread < threads; task.thread++) tasks[all++] = task;
    }
    /* A program with one thread may have tracked pools. */
    if (all == 1) work(&tasks[0]);
    for (int n = 0; n < all && all > 1; n++)
        if (pthread_create(&ids[n], NULL, work, &tasks[n]) != 0) die("thread", "can't be started", "no resources");
    for (int n = 0; n < all && all > 1; n++) pthread_join(ids[n], NULL);
    for (int pool = 0; pool < count; pool++) pmemobj_close(tasks[pool * threads].pop);
    return 0;
}

/* Compares a thread's structure with the expected result of its steps; adds the findings to
 * `all`. */
static void check_part(const struct task *task, const struct part *part, struct found *all) {
    static struct model model;
    static struct found found;
    memset(&model, 0, sizeof model);
    memset(&found, 0, sizeof found);
    void *map = pmemobj_direct(part->map);
    if (task->kind->bytes == 0) {
        list_check(part, &found);
    } else {
        task->kind->walk(map, &found);
        for (uint64_t n = 0; n < part->done; n++) {
            struct step step = step_of(task->seed, (uint64_t)(part - task->root->parts), n);
            follow(&model, &step);
        }
        for (uint64_t key = 0; key < KEYS && found.wrong == NULL; key++) {
            PMEMoid *at = task->kind->find(map, key);
            if (found.present[key] != model.present[key] || (at != NULL) != model.present[key])
                found.wrong = "a key is missing, or should not be there";
            else if (at != NULL && memcmp(pmemobj_direct(*at), &model.values[key], VALUE) != 0)
                found.wrong = "a value is another one";
        }
    }
    all->maps++;
    all->nodes += found.nodes;
    all->buckets += found.buckets;
    all->keys += found.keys;
    if (found.wrong != NULL) {
        char what[64];
        snprintf(what, sizeof what, "thread %d after %" PRIu64 " steps", (int)(part - task->root->parts), part->done);
        die(task->path, what, found.wrong);
    }
}

static int check(int count, char **names, uint64_t seed) {
    for (int pool = 0; pool < count; pool++) {
        struct task task = task_of(names[pool], false);
        struct found all = {0}, there = {0};
        task.seed = seed;
        for (int thread = 0; thread < MOST_THREADS; thread++) {
            const struct part *part = &task.root->parts[thread];
            if (!OID_IS_NULL(part->map)) check_part(&task, part, &all);
            printf("%d %d %" PRIu64 "\n", pool, thread, part->done);
        }
        PMEMoid oid;
        uint64_t others = 0;
        POBJ_FOREACH(task.pop, oid) {
            uint64_t type = pmemobj_type_num(oid);
            uint64_t *counter = type == TYPE_MAP ? &there.maps : type == TYPE_NODE ? &there.nodes : type == TYPE_BUCKETS ? &there.buckets
                                : type == TYPE_VALUE ? &there.keys : &others;
            ++*counter;
        }
        if (there.maps != all.maps || there.nodes != all.nodes || there.buckets != all.buckets || there.keys != all.keys || others != 0)
            die(task.path, "objects", "some are allocated that nothing leads to");
        pmemobj_close(task.pop);
    }
    return 0;
}

/* An operation of a file. */
struct operation {
    char what;
    uint64_t key;
    size_t at, bytes;
};
enum { MOST_OPERATIONS = 64 };

static void apply(const struct kind *kind, void *map, const struct operation *operation) {
    PMEMoid *at = kind->find(map, operation->key);
    if (operation->what == 'p') {
        PMEMoid oid = pmemobj_tx_alloc(sizeof(struct value), TYPE_VALUE);
        memset(AT(value, oid)->bytes, (int)operation->key, VALUE);
        if (at == NULL) {
            kind->insert(map, operation->key, oid);
        } else {
            PMEMoid old = *at;
            CHANGE(at);
            *at = oid;
            pmemobj_tx_free(old);
        }
    } else if (at != NULL && operation->what == 'u') {
        uint8_t *bytes = AT(value, *at)->bytes + operation->at;
        pmemobj_tx_add_range_direct(bytes, operation->bytes);
        for (size_t n = 0; n < operation->bytes; n++) bytes[n]++;
    } else if (at != NULL) {
        PMEMoid old = *at;
        kind->remove(map, operation->key);
        pmemobj_tx_free(old);
    }
}

/* Performs the transactions of a file. */
static int follow_file(const char *path, const char *name) {
    struct task task = task_of(name, true);
    struct part *part = &task.root->parts[0];
    if (task.kind->bytes == 0) die(name, "no map", "a list has no keys");
    TX_BEGIN(task.pop) {
        pmemobj_tx_add_range_direct(part, sizeof *part);
        part->map = pmemobj_tx_zalloc(task.kind->bytes, TYPE_MAP);
    }
    TX_END
    FILE *file = fopen(path, "r");
    if (file == NULL) die(path, "can't be opened", "no such file");
    struct operation all[MOST_OPERATIONS];
    volatile int count = 0;
    char line[128];
    while (fgets(line, sizeof line, file) != NULL) {
        struct operation one = {.what = line[0]};
        int words = sscanf(line + 1, "%" SCNu64 " %zu %zu", &one.key, &one.at, &one.bytes);
        int wanted = one.what == 'u' ? 3 : one.what == 'p' || one.what == 'r' ? 1 : 0;
        bool ends = one.what == 'c' || one.what == 'a';
        if ((wanted == 0 && !ends) || (wanted > 0 && words != wanted)) die(path, "no operation", line);
        if (!ends && (count == MOST_OPERATIONS || one.key >= KEYS)) die(path, "out of range", line);
        if (one.what == 'u' && (one.at >= VALUE || one.bytes > VALUE - one.at)) die(path, "out of range", line);
        if (!ends) {
            all[count++] = one;
            continue;
        }
        TX_BEGIN(task.pop) {
            for (int n = 0; n < count; n++) apply(task.kind, pmemobj_direct(part->map), &all[n]);
            if (one.what == 'a') pmemobj_tx_abort(ECANCELED);
        }
        TX_END
        count = 0;
    }
    fclose(file);
    pmemobj_close(task.pop);
    return 0;
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
    if (argc > 3 && argc <= 3 + MOST_POOLS && strcmp(argv[1], "check") == 0) return check(argc - 3, argv + 3, seed);
    if (argc == 4 && strcmp(argv[1], "follow") == 0) return follow_file(argv[2], argv[3]);
    int threads = argc > 4 ? atoi(argv[4]) : 0;
    if (argc > 5 && argc <= 5 + MOST_POOLS && strcmp(argv[1], "run") == 0 && threads >= 1 && threads <= MOST_THREADS)
        return run(argc - 5, argv + 5, seed, strtoull(argv[3], NULL, 0), threads);
    fprintf(stderr, "usage: structures run SEED STEPS THREADS KIND:POOL...\n       structures check SEED KIND:POOL...\n       structures follow FILE KIND:POOL\n");
    return 2;
}
