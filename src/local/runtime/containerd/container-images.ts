import { VERSION } from "../../../api/tables/release.ts";
import type { Container } from "../../controllers/workload-types.ts";
import { imageRelease } from "../../programs/our-program.ts";
import { imageName, type PlatformImage, platformImage } from "../netns/images.ts";
import { ImageError } from "../node-runtime.ts";
import type { BuiltImage } from "./image-build.ts";

/** What a container is on nodes with a container runtime: one of the images that were made here, or a part of the platform. */
export type ContainerImage =
  | {
      is: "container";
      /** As the node's runtime knows it. */
      reference: string;
      /** The image's own user, as its numbers. */
      user: string;
      command: readonly string[];
      args: readonly string[];
    }
  | PlatformImage;

/** There is no registry: a name that is neither ours nor known is an image that cannot be pulled. */
export function containerImage(container: Container, { ours, pause }: BuiltImage): ContainerImage {
  const platform = platformImage(container);
  if (platform) return platform;
  const { image = "", command = [], args = [] } = container;
  const release = imageRelease(image);
  if (release !== undefined) {
    const digest = /@(sha256:[0-9a-f]+)$/.exec(image)?.[1];
    if (release !== VERSION) throw new ImageError(`the image that was built here is of ${VERSION}, not of ${release}`);
    if (digest !== undefined && digest !== ours.digest)
      throw new ImageError(`the image that was built here has the digest ${ours.digest}, not ${digest}`);
    return { is: "container", ...ours, command, args };
  }
  const name = imageName(image);
  if (name === "pause" && command.length + args.length === 0) return { is: "container", ...pause, command, args };
  if (name === "probe") {
    const [given, words] =
      command.length > 0 ? [command, args] : [["vendor", "probe"], args.length > 0 ? args : ["serve"]];
    return { is: "container", ...ours, command: given, args: words };
  }
  throw new ImageError(`these nodes have no registry, only ${ours.reference}, pause and probe`);
}
