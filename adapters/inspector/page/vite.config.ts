import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'
import { browserFiles } from '../../client/browser/vite.plugin.ts'

/** Builds the page into the package, beside the hub that serves it. It loads nothing from other origins. */
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/inspector/',
  logLevel: 'warn',
  plugins: [browserFiles],
  build: {
    outDir: fileURLToPath(new URL('../../../dist/adapters/inspector/page', import.meta.url)),
    emptyOutDir: true,
    // The setting of zod is made in the file of zod, before any other file makes a schema.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'zod', test: /[\\/]zod[\\/]|without-eval/ }] } } },
    target: 'es2023'
  }
})
