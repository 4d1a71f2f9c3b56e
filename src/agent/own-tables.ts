import type { ObjectOutcome, Table } from "../dataplane/contract.ts";
import type { DataplaneModel } from "../policy/model.ts";
import type { PodRecord } from "./pods/pod-records.ts";

export function podsTable(records: readonly PodRecord[]): Table {
  return {
    columns: ["pod", "container", "interface", "addresses", "namespace", "state"],
    rows: ordered(
      records.map(({ namespace, pod, containerId, interfaceName, addresses, netns, state }) => [
        `${namespace}/${pod}`,
        containerId.slice(0, 13),
        interfaceName,
        addresses.join(" "),
        netns,
        state,
      ]),
    ),
  };
}

export function settingsTable({ settings }: DataplaneModel): Table {
  const { configuration, ...ours } = settings;
  return {
    columns: ["setting", "value"],
    rows: ordered([
      ...Object.entries(ours).map(([name, value]) => [name, text(value)]),
      ...Object.entries(configuration).map(([name, value]) => [`configuration.${name}`, text(value)]),
    ]),
  };
}

/** Objects that are not in effect: those that cannot be understood, and those the kernel would not take. */
export function problemsTable(model: DataplaneModel, failed: readonly ObjectOutcome[]): Table {
  return {
    columns: ["object", "code", "problem"],
    rows: ordered([
      ...[...model.problems.values()].map(({ kind, object, code, message }) => [
        `${kind} ${object.namespace ? `${object.namespace}/` : ""}${object.name}`,
        code,
        message,
      ]),
      ...failed.map(({ kind, id, failed: why }) => [`${kind} ${id}`, why?.code ?? "", why?.message ?? ""]),
    ]),
  };
}

function ordered(rows: string[][]): string[][] {
  return rows.sort((a, b) => (a.join("\0") < b.join("\0") ? -1 : 1));
}

function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
