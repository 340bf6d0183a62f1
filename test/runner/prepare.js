import { existsSync } from 'node:fs'

// npm runs this after an install in a clone, and not after an install of the tarball. It builds `dist` if that is missing or older than its
// sources. Without the development dependencies it does nothing.
if (existsSync('node_modules/typescript') && existsSync('node_modules/tsx')) {
  const { tsImport } = await import('tsx/esm/api')
  const { buildStale } = await tsImport('./builds.ts', import.meta.url)
  await buildStale(['library', 'page'])
}
