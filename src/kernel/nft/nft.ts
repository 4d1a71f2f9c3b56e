/** nftables through its own library: the language, the JSON and the error texts are those of `nft`, without starting a process. */
import { errors } from "../errors.ts";
import { inside } from "../netns/netns.ts";
import type { Netns } from "../netns/netns-port.ts";
import { type Native, openLibrary } from "../sys.ts";
import type { NftObject, NftPort, NftTable } from "./nft-port.ts";

const FILE = "libnftables.so.1";
const PROTOTYPES = {
  create: "void *nft_ctx_new(uint32_t flags)",
  free: "void nft_ctx_free(void *context)",
  run: "int nft_run_cmd_from_buffer(void *context, const char *commands)",
  bufferOutput: "int nft_ctx_buffer_output(void *context)",
  output: "const char *nft_ctx_get_output_buffer(void *context)",
  bufferErrors: "int nft_ctx_buffer_error(void *context)",
  errors: "const char *nft_ctx_get_error_buffer(void *context)",
  setOutput: "void nft_ctx_output_set_flags(void *context, uint flags)",
} as const;
const JSON_OUTPUT = 1 << 4;

type Library = Record<keyof typeof PROTOTYPES, Native>;

let library: Library | undefined;

function load(): Library {
  library ??= openLibrary(FILE, PROTOTYPES);
  return library;
}

/** The library has state outside of its contexts: one call at a time in the whole process. */
let last: Promise<unknown> = Promise.resolve();

function inTurn<T>(act: () => Promise<T>): Promise<T> {
  const turn = last.then(act, act);
  last = turn.catch(() => undefined);
  return turn;
}

/** The socket of a context is opened with it, and so is the namespace it works in, whichever thread runs a command later. */
export function realNft(netns?: Netns): NftPort {
  const nft = load();
  const make = () => nft.create(0);
  const context = netns ? inside(netns.fd, make) : make();
  if (!context) throw errors.KERNEL_NFT_REFUSED("no context");
  nft.bufferOutput(context);
  nft.bufferErrors(context);
  nft.setOutput(context, JSON_OUTPUT);
  let closed = false;

  const execute = async (commands: string): Promise<string> => {
    if (closed) throw errors.KERNEL_NFT_REFUSED("this connection is closed");
    return inTurn(async () => {
      const result = await callAsync(nft.run, context, commands);
      const output = String(nft.output(context) ?? "");
      const problem = String(nft.errors(context) ?? "").trim();
      if (result !== 0) throw errors.KERNEL_NFT_REFUSED(problem || `status ${result}`);
      return output;
    });
  };

  const list = async (command: string): Promise<NftObject[]> => {
    const output = await execute(command);
    if (output.trim() === "") return [];
    const parsed = JSON.parse(output) as { nftables: NftObject[] };
    return parsed.nftables.filter((item) => !("metainfo" in item));
  };

  return {
    run: async (commands) => void (await execute(commands)),
    list,
    tables: async () => (await list("list tables")).flatMap(tableOf),
    close: () => {
      if (closed) return;
      closed = true;
      // After whatever is under way: freeing a context in use would take the process with it.
      void inTurn(async () => nft.free(context));
    },
  };
}

function tableOf(item: NftObject): NftTable[] {
  const table = item["table"] as NftTable | undefined;
  return table ? [{ family: table.family, name: table.name }] : [];
}

function callAsync(native: Native, ...args: unknown[]): Promise<number> {
  return new Promise((resolve, reject) => {
    native.async(...args, (error: unknown, result: number) => (error ? reject(error) : resolve(result)));
  });
}
