#!/usr/bin/env node
// `npm create taskchart [DIR] [-- --kind KIND]` is `taskchart init [DIR] [--kind KIND]`.
process.argv.splice(2, 0, 'init')
const root = import.meta.resolve('taskchart/package.json')
await import(new URL('dist/adapters/cli/bin.js', root).href)
