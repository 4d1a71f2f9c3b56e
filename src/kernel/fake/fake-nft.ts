import { errors } from "../errors.ts";
import type { NftObject, NftPort } from "../nft/nft-port.ts";
import { applyCommands, copyTables, type FakeNftTable, NftRefusal } from "./fake-nft-state.ts";
import type { FakeNamespace } from "./fake-state.ts";

export function fakeNft(namespace: FakeNamespace): NftPort {
  let closed = false;
  const refuseClosed = () => {
    if (closed) throw errors.KERNEL_NFT_REFUSED("this connection is closed");
  };
  return {
    run: async (commands) => {
      refuseClosed();
      const changed = copyTables(namespace.nft);
      try {
        applyCommands(changed, commands);
      } catch (error) {
        if (error instanceof NftRefusal) throw errors.KERNEL_NFT_REFUSED(`Error: ${error.message}`);
        throw error;
      }
      namespace.nft = changed;
      namespace.nftCommands.push(commands);
    },
    list: async (command) => {
      refuseClosed();
      return list(namespace, command.trim().split(/\s+/));
    },
    tables: async () => [...namespace.nft.values()].map(({ family, name }) => ({ family, name })),
    close: () => {
      closed = true;
    },
  };
}

function list(namespace: FakeNamespace, [verb, what, family, name, part]: string[]): NftObject[] {
  if (verb !== "list") throw errors.KERNEL_NFT_REFUSED(`Error: syntax error, unexpected ${verb}`);
  const all = [...namespace.nft.values()];
  if (what === "tables") return all.map(tableObject);
  if (what === "ruleset") return all.flatMap(everything);
  if (what === "chains") return all.flatMap((table) => [tableObject(table), ...chainObjects(table)]);
  if (what === "sets") return all.flatMap((table) => [tableObject(table), ...setObjects(table, "set")]);
  if (what === "maps") return all.flatMap((table) => [tableObject(table), ...setObjects(table, "map")]);
  const table = namespace.nft.get(`${family} ${name}`);
  if (!table) throw errors.KERNEL_NFT_REFUSED("Error: No such file or directory");
  if (what === "table") return everything(table);
  const found = everything(table).filter((item) => {
    const body = item[what ?? ""] as { name?: string } | undefined;
    const rule = item["rule"] as { chain?: string } | undefined;
    return body?.name === part || (what === "chain" && rule?.chain === part);
  });
  if (found.length === 0) throw errors.KERNEL_NFT_REFUSED("Error: No such file or directory");
  return found;
}

function everything(table: FakeNftTable): NftObject[] {
  return [
    tableObject(table),
    ...setObjects(table, "set"),
    ...setObjects(table, "map"),
    ...chainObjects(table),
    ...ruleObjects(table),
  ];
}

function tableObject({ family, name }: FakeNftTable): NftObject {
  return { table: { family, name } };
}

function chainObjects(table: FakeNftTable): NftObject[] {
  return [...table.chains].map(([name, { hook }]) => ({
    chain: { family: table.family, table: table.name, name, ...hookOf(hook) },
  }));
}

function hookOf(text: string): object {
  const found = /type (\w+) hook (\w+).*?priority ([\w-]+)/.exec(text);
  if (!found) return {};
  const policy = /policy (\w+)/.exec(text)?.[1] ?? "accept";
  return { type: found[1], hook: found[2], prio: Number(found[3]) || found[3], policy };
}

/** As nft's JSON, but for `expr`: the fake keeps a rule as the text it was given, under `text`. */
function ruleObjects(table: FakeNftTable): NftObject[] {
  return [...table.chains].flatMap(([chain, { rules }]) =>
    rules.map(({ handle, text }) => {
      const comment = /comment "([^"]*)"/.exec(text)?.[1];
      return {
        rule: { family: table.family, table: table.name, chain, handle, text, ...(comment ? { comment } : {}) },
      };
    }),
  );
}

function setObjects(table: FakeNftTable, kind: "set" | "map"): NftObject[] {
  return [...table.sets]
    .filter(([, set]) => set.kind === kind)
    .map(([name, { description, elements }]) => {
      const type = /type(?:of)? ([^;:]+)/.exec(description)?.[1]?.trim();
      const elem = [...elements].map(([key, value]) => (kind === "map" ? [element(key), value] : element(key)));
      const flags = /flags ([^;]+)/
        .exec(description)?.[1]
        ?.trim()
        .split(/\s*,\s*/);
      const body = {
        ...{ family: table.family, name, table: table.name, type },
        ...(flags ? { flags } : {}),
        ...(elem.length > 0 ? { elem } : {}),
      };
      return { [kind]: body };
    });
}

/** Keys as nft's JSON shows them. */
function element(key: string): unknown {
  if (key.includes(" . ")) return { concat: key.split(" . ").map(element) };
  const prefix = /^([0-9a-f.:]+)\/(\d+)$/i.exec(key);
  if (prefix) return { prefix: { addr: prefix[1], len: Number(prefix[2]) } };
  const range = /^([0-9a-f.:]+)-([0-9a-f.:]+)$/i.exec(key);
  if (range) return { range: [element(range[1]!), element(range[2]!)] };
  if (/^\d+$/.test(key)) return Number(key);
  return key.replace(/^"(.*)"$/, "$1");
}
