import { resolve } from 'node:path'
import { vacuumFile } from '../../storage/file/vacuum.ts'
import { readArguments } from '../arguments.ts'
import { EXIT, type Io } from '../command.ts'
import { sizeText } from './size-text.ts'

/** `taskchart db vacuum`: gives the free pages of a store's file back to the file system. */
export async function vacuum(args: readonly string[], { cwd, stderr }: Io): Promise<number> {
  const { positionals: [file] } = readArguments(args, {}, ['FILE'])
  const { before, after } = vacuumFile(resolve(cwd, file))
  stderr.write(`${file} had ${sizeText(before)}, and has ${sizeText(after)}.\n`)
  return EXIT.ok
}
