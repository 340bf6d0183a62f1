import { readFileSync } from 'node:fs'
import { loadedBy } from '../faults/loaded.ts'
import type { PackagePart } from './builds.ts'

/** What uses the page, or another file that browsers load. */
const PAGE = /fixtures\/pages\/chromium|inspector\/page|dist\/browser/

/**
 * What uses the compiled library: its name, its folder, and whatever may load one of both in another process or from
 * another file.
 */
const LIBRARY = /['/]taskchart\b|\bdist\/|examples\/|docs\/|README|tsImport|runBare|spawn|fork\(|execFile|new Worker/

/** The parts of `dist` that a test file needs, as its text and that of the helpers it imports say. */
export function neededParts(file: string): PackagePart[] {
  const texts = Array.from(loadedBy(file, () => undefined))
    .filter(path => !/^(?:machines|runtime|adapters)\//.test(path))
    .map(path => readFileSync(path, 'utf8'))
  const needsPage = texts.some(text => PAGE.test(text))
  return [
    ...(needsPage || texts.some(text => LIBRARY.test(text)) ? ['library' as const] : []),
    ...(needsPage ? ['page' as const] : [])
  ]
}
