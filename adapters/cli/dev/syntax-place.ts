import { execFile } from 'node:child_process'

/** Where in JavaScript files the first is that cannot be read, with what stands there: an older Node's error does not tell. Empty if all can be. */
export async function syntaxPlace(files: Iterable<string>): Promise<string> {
  for (const file of files) {
    if (!/\.[cm]?js$/.test(file)) continue
    const said = await new Promise<string>(resolve => {
      execFile(process.execPath, ['--check', file], { env: {} }, (_, __, stderr) => resolve(stderr))
    })
    if (said !== '') return said.split('\n').slice(0, 3).join('\n')
  }
  return ''
}
