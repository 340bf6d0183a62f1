import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

/** Builds the page into the package, beside the hub that serves it. It loads nothing from other origins. */
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/inspector/',
  logLevel: 'warn',
  build: {
    outDir: fileURLToPath(new URL('../../../dist/adapters/inspector/page', import.meta.url)),
    emptyOutDir: true,
    target: 'es2023',
    // Bindings that the page never loads, whose packages it does not have.
    rolldownOptions: { external: [/^@a2a-js\/sdk/, /^@grpc\//, /^@bufbuild\//, 'ws'] }
  }
})
