import { grpcClient } from "../../../kit/grpc/grpc-client.ts";
import type { Received, Sent } from "../../../kit/grpc/protobuf.ts";
import { CRI_CALLS, CRI_SERVICE } from "./cri-messages.ts";

type Calls = typeof CRI_CALLS;
export type CriCall = keyof Calls;

/** A node's container runtime, as a kubelet calls it. */
export interface CriClient {
  call<C extends CriCall>(name: C, request: Sent<Calls[C][0]>, timeoutMs?: number): Promise<Received<Calls[C][1]>>;
  close(): void;
}

const PATIENCE_MS = 120_000;

export function criClient(socketPath: string): CriClient {
  const client = grpcClient(socketPath);
  let closed = false;
  return {
    async call(name, request, timeoutMs = PATIENCE_MS) {
      if (closed) throw new Error("the node is gone");
      return (await client.call(`${CRI_SERVICE}/${name}`, CRI_CALLS[name], request, timeoutMs)) as never;
    },
    close() {
      closed = true;
      client.close();
    },
  };
}
