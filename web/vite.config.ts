// Builds the page into the package. Nothing is inlined: the server's content policy allows its own files only.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

const outDir = "../src/scrubjay/web";

/** Beside each file that is worth it the same compressed, as servers/http/page.py serves it. */
const compressed = {
  name: "compressed",
  closeBundle() {
    for (const name of readdirSync(outDir, { recursive: true, encoding: "utf8" }).filter((one) => /\.(js|css|html)$/.test(one))) {
      const file = `${outDir}/${name}`;
      const bytes = readFileSync(file);
      writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
      writeFileSync(`${file}.br`, brotliCompressSync(bytes));
    }
  },
};

export default defineConfig({
  base: "./",
  plugins: [svelte(), compressed],
  build: {
    outDir,
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
  },
});
