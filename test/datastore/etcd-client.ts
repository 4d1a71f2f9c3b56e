import { type Client, createClient } from "../../src/cluster/client.ts";
import { readEtcdOptions } from "../../src/datastore/config.ts";
import type { EtcdConnection } from "../../src/datastore/etcd/etcd-connection.ts";
import { readPage } from "../../src/datastore/etcd/etcd-keys.ts";
import { openEtcdDatastore } from "../../src/datastore/open-datastore.ts";
import { type EtcdOptions, type EtcdServer, startEtcd } from "../support/etcd-server.ts";

export interface EtcdClient {
  client: Client;
  etcd: EtcdConnection;
  server: EtcdServer;
  /** Compacts up to now. */
  forget(): Promise<void>;
  close(): Promise<void>;
}

/** A client of an etcd of its own, as a program makes it. */
export async function etcdClient(options: EtcdOptions = {}): Promise<EtcdClient> {
  const server = await startEtcd(options);
  const nowhere = { request: () => Promise.reject(new Error("there is no Kubernetes here")), close: () => {} };
  const { copies, transport, etcd } = openEtcdDatastore(readEtcdOptions(server.env)!, nowhere);
  return {
    client: createClient(copies, { userAgent: "story" }),
    etcd,
    server,
    async forget() {
      const { revision } = await readPage(etcd, "/vendor/", { limit: 1 });
      await etcd.write("/etcdserverpb.KV/Compact", { revision });
    },
    async close() {
      transport.close();
      await server.stop();
    },
  };
}
