import { resolve } from 'node:path'
import { backupFile } from '../../storage/file/backup.ts'
import { readArguments } from '../arguments.ts'
import { EXIT, type Io } from '../command.ts'
import { sizeText } from './size-text.ts'

/** `taskchart db backup`: copies a store's file to a new file. */
export async function backup(args: readonly string[], { cwd, stderr }: Io): Promise<number> {
  const { positionals: [file, to] } = readArguments(args, {}, ['FILE', 'TO'])
  const bytes = backupFile(resolve(cwd, file), resolve(cwd, to))
  stderr.write(`${to} has ${sizeText(bytes)}.\n`)
  return EXIT.ok
}
