import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

/** The page is built into the package beside the hub, which serves it: nothing of it comes from elsewhere. */
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/inspector/',
  logLevel: 'warn',
  build: {
    outDir: fileURLToPath(new URL('../../../dist/adapters/inspector/page', import.meta.url)),
    emptyOutDir: true,
    target: 'es2023',
    // What speaks to agents elsewhere is never loaded here: it would want packages that the page does not have.
    rolldownOptions: { external: [/^@a2a-js\/sdk/, /^@grpc\//, /^@bufbuild\//, 'ws'] }
  }
})
