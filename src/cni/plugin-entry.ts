import { pluginMain } from "./plugin-main.ts";

void pluginMain();
