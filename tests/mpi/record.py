"""record.py FILE... - what is in files of src/record/plugin/record.h, a line a record, for tests.

The layout stands here a second time, by hand, so that a field which moves is found.  Words: of a
record KEY=VALUE, in the order of their numbers."""
import struct
import sys

RECORD = struct.Struct("<12Qi4H8B3I8Q")
FIELDS = ("word start stop first last gpu_start gpu_stop count bytes nccl_seq parent tag peer comm channels started "
          "stopped kind flags op dtype algo proto warps channel proxy_started proxy_stopped steps sent received "
          "send_gpu send_peer send_net recv_net recv_flush recv_gpu").split()
KINDS = ["", "COLL", "P2P", "GROUP", "PROXY", "CALL", "GROUP_CALL"]
assert RECORD.size == 192 and len(FIELDS) == 36


def text(raw):
    return raw.split(b"\0")[0].decode()


def show(path):
    data = open(path, "rb").read()
    magic, order, version, head, comm_size, size, _, comm_at, ring_at, capacity = struct.unpack_from("<8s6I3Q", data)
    assert (magic, order, version, head, comm_size, size) == (b"RGNCCL\r\n", 0x01020304, 1, 4408, 128, 192), path
    pid, abi, nccl, events, wall, mono, begun, dropped, foreign, closed, comms, names = struct.unpack_from("<4I6Q2I", data, 56)
    words = [text(data[312 + 32 * i:344 + 32 * i]) for i in range(names)]
    print(f"file abi={abi} nccl={nccl} events={events:#x} begun={begun} dropped={dropped} foreign={foreign} "
          f"closed={int(closed > 0)} comms={comms}")
    table = []
    for i in range(comms):
        state, rank, ranks, nodes, key, opened, _, records = struct.unpack_from("<I3i4Q", data, comm_at + 128 * i)
        table.append(rank)
        print(f"comm state={state} rank={rank} ranks={ranks} nodes={nodes} hash={key:#x} records={records}")
    for place in range(min(begun, capacity)):
        r = dict(zip(FIELDS, RECORD.unpack_from(data, ring_at + 192 * place)))
        number = (r["word"] >> 16) - 1
        assert number % capacity == place and not r["word"] & 0x8000, (path, place)
        assert mono <= r["start"] and r["start"] <= (r["stop"] or r["start"]), (path, r)
        assert not r["last"] or r["start"] <= r["first"] <= r["last"], (path, r)
        assert r["gpu_start"] <= (r["gpu_stop"] or r["gpu_start"]), (path, r)
        for name in ("op", "dtype", "algo", "proto"):
            r[name] = words[r[name]]
        r["kind"] = KINDS[r["kind"]]
        r["timed"] = int(r["gpu_stop"] > 0)
        r["ended"] = int(r["stop"] > 0)
        print("record", " ".join(f"{k}={r[k]}" for k in r if k not in ("word", "start", "stop", "first", "last", "gpu_start",
                                                                    "gpu_stop")))


for file in sys.argv[1:]:
    show(file)
