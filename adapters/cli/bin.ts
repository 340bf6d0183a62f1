#!/usr/bin/env node
import { computesApart, runApart } from './process/apart.ts'

const args = process.argv.slice(2)
if (computesApart(args)) process.exit(await runApart(args))
await import('./process/command-process.ts')
