import { vendorNames } from "../../../api/names.ts";
import { VERSION } from "../../../api/tables/release.ts";
import type { Container } from "../../controllers/workload-types.ts";
import { canRunInstead, ourProgram } from "../../programs/our-program.ts";
import { ImageError } from "../node-runtime.ts";
import { OUR_IMAGE } from "./node-script.ts";
import { releaseDirectory } from "./places.ts";
import { SYSTEM_PATH } from "./run-command.ts";
import { isProgram } from "./why-not-real.ts";

/** What a container is on real nodes. There is no registry: an image is a name, and all have the files of this machine. */
export type ImageRun = { is: "process"; command: string[]; env: Record<string, string>; files: string } | PlatformImage;

/** A container of the platform that is none here. */
export type PlatformImage =
  /** Done for the node by the cluster itself. */
  | { is: "service-proxy" }
  /** Nothing here depends on it. */
  | { is: "paper" };

export const CONTAINER_PATH = `${OUR_IMAGE}/bin:${SYSTEM_PATH}`;

const NONE: ReadonlySet<string> = new Set();
const SIMULATED = new Set(["coredns"]);

/** `releases`: versions of other releases whose own programs are here. */
export function imageRun(container: Container, releases: ReadonlySet<string> = NONE): ImageRun {
  const ours = ourProgram(container);
  const command = [...(container.command ?? []), ...(container.args ?? [])];
  if (ours) {
    const env = { VENDOR_VERSION: ours.version };
    if (releases.has(ours.version))
      return { is: "process", command, env, files: releaseDirectory(OUR_IMAGE, ours.version) };
    if (!canRunInstead(ours)) {
      throw new ImageError(`image "${container.image}" is of release ${ours.version}; ${VERSION} is here`);
    }
    return { is: "process", command, env, files: OUR_IMAGE };
  }
  const platform = platformImage(container);
  if (platform) return platform;
  const name = imageName(container.image ?? "");
  if (name === "pause" && command.length === 0) return plain(["sleep", "infinity"]);
  if (name === "probe")
    return plain(container.command ? command : ["vendor", "probe", ...(container.args ?? ["serve"])]);
  if (command.length > 0 && isHere(command[0] as string)) return plain(command);
  const why =
    command.length === 0
      ? "it has no command, and only the command of a container can be run here"
      : `there is no program "${command[0]}" on this machine`;
  throw new ImageError(`image "${container.image}" cannot be run on these nodes: ${why}`);
}

export function platformImage({ image = "" }: Container): PlatformImage | undefined {
  const name = imageName(image);
  if (name === vendorNames.serviceProxy.daemonSet) return { is: "service-proxy" };
  return SIMULATED.has(name) ? { is: "paper" } : undefined;
}

function plain(command: string[]): ImageRun {
  return { is: "process", command, env: {}, files: OUR_IMAGE };
}

/** `registry.local:5000/some/name:tag@digest` -> `name`. */
export function imageName(image: string): string {
  return (image.split("/").at(-1) ?? "").split(/[:@]/, 1)[0] ?? "";
}

function isHere(program: string): boolean {
  if (program.includes("/")) return isProgram(program);
  return (
    ["vendor", "vendorctl"].includes(program) || SYSTEM_PATH.split(":").some((path) => isProgram(`${path}/${program}`))
  );
}
