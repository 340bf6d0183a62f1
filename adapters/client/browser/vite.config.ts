import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'
import { browserFiles } from './vite.plugin.ts'

const fileAt = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** Which modules a page loads together: few files, none of which holds what another page would not need. */
const GROUPS = [
  {
    name: 'core',
    test: /machines\/protocol\/(?!card|security|operations|requests|push)|client\/(?:requests|options|hosts|credentials|calls|card\/(?:bindings|card-limits)|transports\/body|retries\/(?:lost-errors|transport-state))\./,
    priority: 2
  },
  { name: 'client', test: /client\/(?:state|connect|messages|artifact-versions|open-agent)/, priority: 1 },
  { name: 'agent-card', test: /client\/(?:card\/|open-by-card)/, priority: 1 }
]

/** Builds the client for browsers: one copy of everything that it needs, in modules that load what a page uses. */
export default defineConfig({
  root: fileAt('.'),
  logLevel: 'warn',
  plugins: [browserFiles],
  resolve: { alias: [{ find: /^zod$/, replacement: fileAt('zod.ts') }] },
  build: {
    outDir: fileAt('../../../dist/browser'),
    emptyOutDir: true,
    target: 'es2023',
    minify: false,
    lib: { entry: { client: fileAt('../connect.ts'), react: fileAt('../../react/index.ts') }, formats: ['es'] },
    rolldownOptions: { external: ['react'], output: { chunkFileNames: '[name].js', codeSplitting: { groups: GROUPS } } }
  }
})
