import { type ClientHttp2Session, connect, type Settings } from "node:http2";
import { grpcCall, grpcStream } from "../../kit/grpc/grpc-session.ts";
import type { KeyPair } from "../../kit/x509.ts";

/** The published schema, by the names it uses, apart from the product's own tables: "NAME=NUMBER", "*" for many, "{...}" for a message. */
const SCHEMA: Readonly<Record<string, string>> = {
  PolicyHit: "kind=1 namespace=2:s name=3:s tier=4:s action=5 policy_index=6 rule_index=7 trigger=8:PolicyHit",
  PolicyTrace: "enforced_policies=1:PolicyHit* pending_policies=2:PolicyHit*",
  FlowKey:
    "source_name=1:s source_namespace=2:s source_type=3 dest_name=4:s dest_namespace=5:s dest_type=6 dest_port=7 " +
    "dest_service_name=8:s dest_service_namespace=9:s dest_service_port_name=10:s dest_service_port=11 proto=12:s " +
    "reporter=13 action=14 policies=15:PolicyTrace",
  Flow:
    "Key=1:FlowKey start_time=2 end_time=3 source_labels=4:s* dest_labels=5:s* packets_in=6 packets_out=7 bytes_in=8 " +
    "bytes_out=9 num_connections_started=10 num_connections_completed=11 num_connections_live=12",
  FlowResult: "id=1 flow=2:Flow",
  StringMatch: "value=1:s type=2",
  PortMatch: "port=1",
  PolicyMatch: "kind=1 tier=2:StringMatch namespace=3:StringMatch name=4:StringMatch action=5",
  OldPolicyMatch: "kind=1 tier=2:s namespace=3:s name=4:s action=5",
  Filter:
    "source_names=1:StringMatch* source_namespaces=2:StringMatch* dest_names=3:StringMatch* dest_namespaces=4:StringMatch* " +
    "protocols=5:StringMatch* dest_ports=6:PortMatch* actions=7* policies=8:PolicyMatch* reporter=9 pending_actions=10* " +
    "old_policies=8:OldPolicyMatch*",
  SortOption: "sort_by=1",
  FlowListRequest:
    "start_time_gte=1 start_time_lt=2 page=3 page_size=4 sort_by=5:SortOption* filter=6:Filter aggregation_interval=7",
  ListMetadata: "totalPages=1 totalResults=2",
  FlowListResult: "meta=1:ListMetadata flows=2:FlowResult*",
  FlowStreamRequest: "start_time_gte=1 filter=2:Filter aggregation_interval=3",
  FilterHintsRequest: "type=1 filter=2:Filter start_time_gte=3 start_time_lt=4 page=5 page_size=6",
  FilterHint: "value=1:s",
  FilterHintsResult: "meta=1:ListMetadata hints=2:FilterHint*",
  StatisticsRequest: "start_time_gte=1 start_time_lt=2 type=3 group_by=4 policy_match=5:PolicyMatch time_series=6",
  StatisticsResult:
    "policy=1:PolicyHit direction=2 group_by=3 type=4 allowed_in=5* allowed_out=6* denied_in=7* denied_out=8* passed_in=9* " +
    "passed_out=10* x=11*",
  FlowUpdate: "flow=1:Flow",
  FlowReceipt: "",
};

// biome-ignore lint/suspicious/noExplicitAny: what a dynamic client gets has the shape of the schema above
export type Message = any;

interface Described {
  name: string;
  number: number;
  type: string;
  many: boolean;
}

function fieldsOf(type: string): Described[] {
  const fields = (SCHEMA[type] ?? "").split(" ").filter((word) => word !== "");
  return fields.map((word) => {
    const [, name = "", number, text = "", many] = /^(\w+)=(\d+)(?::(\w+))?(\*)?$/.exec(word) ?? [];
    return { name, number: Number(number), type: text, many: many === "*" };
  });
}

function varint(value: number): number[] {
  let rest = BigInt.asUintN(64, BigInt(value));
  const bytes: number[] = [];
  for (; rest > 127n; rest /= 128n) bytes.push(Number(rest % 128n) + 128);
  return [...bytes, Number(rest)];
}

export function write(type: string, value: Message): Buffer {
  const out: Buffer[] = [];
  const block = (number: number, content: Buffer) =>
    out.push(Buffer.from([...varint(number * 8 + 2), ...varint(content.length)]), content);
  for (const { name, number, type: of, many } of fieldsOf(type)) {
    const given = value[name];
    if (given === undefined) continue;
    if (of === "" && many) block(number, Buffer.from((given as number[]).flatMap(varint)));
    else
      for (const one of many ? (given as Message[]) : [given]) {
        if (of === "") out.push(Buffer.from([...varint(number * 8), ...varint(Number(one))]));
        else block(number, of === "s" ? Buffer.from(one as string) : write(of, one));
      }
  }
  return Buffer.concat(out);
}

function read(type: string, from: Buffer): Message {
  const value: Message = {};
  const fields = new Map(fieldsOf(type).map((field) => [field.number, field]));
  for (const { name, type: of, many } of fields.values())
    value[name] = many ? [] : of === "" ? 0 : of === "s" ? "" : undefined;
  let at = 0;
  const number = () => {
    let read = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = from[at++] as number;
      read += BigInt(byte & 127) << shift;
      if (byte < 128) return Number(BigInt.asIntN(64, read));
    }
  };
  while (at < from.length) {
    const tag = number();
    const field = fields.get(tag >> 3);
    if ((tag & 7) === 0) {
      const one = number();
      if (field) value[field.name] = field.many ? [...value[field.name], one] : one;
      continue;
    }
    const end = number() + at;
    const content = from.subarray(at, end);
    if (field?.type === "") while (at < end) value[field.name].push(number());
    else if (field) {
      const one = field.type === "s" ? content.toString() : read(field.type, content);
      value[field.name] = field.many ? [...value[field.name], one] : one;
    }
    at = end;
  }
  return value;
}

const METHODS: Readonly<Record<string, [request: string, answer: string]>> = {
  "Flows/List": ["FlowListRequest", "FlowListResult"],
  "Flows/Stream": ["FlowStreamRequest", "FlowResult"],
  "Flows/FilterHints": ["FilterHintsRequest", "FilterHintsResult"],
  "Statistics/List": ["StatisticsRequest", "StatisticsResult"],
  "FlowCollector/Connect": ["FlowUpdate", "FlowReceipt"],
};

/** A client that knows the published schema only. */
export function publicClient(port: number, pair: KeyPair, ca: string, settings: Settings = {}) {
  const session: ClientHttp2Session = connect(`https://127.0.0.1:${port}`, {
    ...{ cert: pair.certificate, key: pair.key, ca, servername: "vendor-flow-logs.vendor-system.svc" },
    settings,
  });
  session.on("error", () => undefined);
  const typesOf = (method: string) => METHODS[method] as [string, string];
  return {
    session,
    async call(method: string, request: Message = {}): Promise<Message> {
      const [sent, received] = typesOf(method);
      const message = write(sent, request);
      return read(received, await grpcCall({ session, path: `/goldmane.${method}`, message, timeoutMs: 10_000 }));
    },
    /** Answers as they come, in `got`. */
    stream(method: string, request?: Message) {
      const [sent, received] = typesOf(method);
      const got: Message[] = [];
      const stream = grpcStream({
        ...{ session, path: `/goldmane.${method}` },
        onMessage: (message) => void got.push(read(received, message)),
      });
      const send = (value: Message) => stream.send(write(sent, value));
      if (request) stream.sendLast(write(sent, request));
      return { got, send, close: () => stream.close(), ended: stream.ended };
    },
    async all(method: string, request: Message = {}): Promise<Message[]> {
      const { got, ended } = this.stream(method, request);
      const error = await ended;
      if (error) throw error;
      return got;
    },
    close: () => session.destroy(),
  };
}
