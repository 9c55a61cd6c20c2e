/** Where Pi finds the extension: it lists one by the name of its folder. */
export { default } from "../../ts-shim/index.ts";
