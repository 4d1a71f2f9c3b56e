import { realKernel } from "../../src/kernel/kernel.ts";
import { kernelContract } from "../../src/kernel/testing/contract.ts";
import { whyNoKernel, whyNoNftables } from "./why-not.ts";

kernelContract("the running kernel", realKernel, whyNoKernel, whyNoNftables);
