import { connect } from "node:http2";
import { createConnection } from "node:net";
import { endOf } from "../../src/datastore/etcd/etcd-keys.ts";
import { grpcCall } from "../../src/kit/grpc/grpc-session.ts";
import { bytes, decode, encode, int, message, text } from "../../src/kit/grpc/protobuf.ts";

interface EtcdUser {
  name: string;
  password: string;
}

/** What an etcd's administrator does with etcdctl, by the same API. */
export interface EtcdAdmin {
  /** `auth enable`, with root, and a user whose role is for the service's keys alone. */
  enableUsers(user: EtcdUser): Promise<void>;
  changePassword(user: EtcdUser): Promise<void>;
}

const AUTH = "/etcdserverpb.Auth/";
const READWRITE = 2;
const OURS = "/vendor/";
const ROOT = { name: "root", password: "root's" };
const CALLS = {
  UserAdd: { name: text(1), password: text(2) },
  UserChangePassword: { name: text(1), password: text(2) },
  RoleAdd: { name: text(1) },
  RoleGrantPermission: { name: text(1), perm: message(2, { permType: int(1), key: bytes(2), range_end: bytes(3) }) },
  UserGrantRole: { user: text(1), role: text(2) },
  AuthEnable: {},
  Authenticate: { name: text(1), password: text(2) },
};

export function etcdAdmin(socket: string): EtcdAdmin {
  async function asking<T>(
    work: (call: (name: keyof typeof CALLS, fields?: object, token?: string) => Promise<Buffer>) => Promise<T>,
  ) {
    const session = connect("http://etcd", { createConnection: () => createConnection(socket) });
    try {
      return await work((name, fields = {}, token) => {
        const headers: Record<string, string> = token === undefined ? {} : { token };
        return grpcCall({
          session,
          path: AUTH + name,
          headers,
          message: encode(CALLS[name], fields),
          timeoutMs: 10_000,
        });
      });
    } finally {
      session.close();
    }
  }
  return {
    enableUsers: (user) =>
      asking(async (call) => {
        const perm = { permType: READWRITE, key: Buffer.from(OURS), range_end: endOf(OURS) };
        for (const { name, password } of [ROOT, user]) {
          await call("UserAdd", { name, password });
          await call("RoleAdd", { name });
          await call("UserGrantRole", { user: name, role: name });
        }
        await call("RoleGrantPermission", { name: user.name, perm });
        await call("AuthEnable");
      }),
    changePassword: (user) =>
      asking(async (call) => {
        const { token } = decode({ token: text(2) }, await call("Authenticate", ROOT));
        await call("UserChangePassword", user, token);
      }),
  };
}
