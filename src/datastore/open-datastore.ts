import { vendorNames } from "../api/names.ts";
import type { Transport } from "../api/transport.ts";
import { inProcessTransport } from "../apiserver/in-process.ts";
import { EtcdApi } from "./etcd/etcd-api.ts";
import { EtcdConnection, type EtcdOptions } from "./etcd/etcd-connection.ts";

/** A program's view of the cluster where our kinds are in etcd. */
export interface EtcdDatastore {
  /** The Kubernetes API, with our kinds in it as if they were CRDs. */
  transport: Transport;
  /** etcd alone: our kinds, and the copies of Kubernetes' objects. */
  copies: Transport;
  etcd: EtcdConnection;
}

const READER = { name: "system:datastore", groups: [] };

export function openEtcdDatastore(options: EtcdOptions, kubernetes: Transport): EtcdDatastore {
  const etcd = new EtcdConnection(options);
  const closing = new AbortController();
  const copies = inProcessTransport(new EtcdApi({ etcd, names: vendorNames }), READER, closing.signal);
  const { group, version } = vendorNames.groups.stored;
  const ours = `/apis/${group}/${version}/`;
  return {
    transport: {
      request: (request) => (request.path.startsWith(ours) ? copies : kubernetes).request(request),
      close() {
        closing.abort(new Error("the datastore is closed"));
        etcd.close();
        kubernetes.close();
      },
    },
    copies,
    etcd,
  };
}
