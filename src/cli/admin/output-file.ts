// A file of exported entries, one JSON object per line, which an export continues after its last entry.
import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { CommandError } from '../errors.ts'

/** More than the longest entry. */
const TAIL_BYTES = 256 * 1024

interface OutputFile {
  /** The cursor of the last entry; undefined if the file is empty. */
  lastCursor: string | undefined
  append(text: string): void
  close(): void
}

/** Creates the file, readable by its owner only, if there is none. Removes an incomplete last line. */
export function openOutputFile(path: string): OutputFile {
  const file = open(path)
  try {
    return {
      lastCursor: continueAfterLast(path, file),
      append(text) {
        const bytes = Buffer.from(text)
        for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written)
      },
      close() {
        fsyncSync(file)
        closeSync(file)
      },
    }
  } catch (error) {
    closeSync(file)
    throw error
  }
}

function open(path: string): number {
  try {
    return openSync(path, 'a+', 0o600)
  } catch (error) {
    throw new CommandError('output', `Cannot write to ${path}: ${(error as Error).message}.`)
  }
}

function continueAfterLast(path: string, file: number): string | undefined {
  const { size } = fstatSync(file)
  const tail = Buffer.alloc(Math.min(size, TAIL_BYTES))
  readSync(file, tail, 0, tail.length, size - tail.length)
  const end = tail.lastIndexOf('\n') + 1
  if (end === 0 && size > TAIL_BYTES) throw notAnExport(path)
  const cursor = end === 0 ? undefined : readCursor(path, tail.subarray(0, end - 1))
  // An export was killed while it wrote this line.
  if (end < tail.length) ftruncateSync(file, size - tail.length + end)
  return cursor
}

function readCursor(path: string, lines: Buffer): string {
  const last = lines.subarray(lines.lastIndexOf('\n') + 1).toString()
  try {
    const { cursor } = JSON.parse(last)
    if (typeof cursor === 'string') return cursor
  } catch {}
  throw notAnExport(path)
}

const notAnExport = (path: string) =>
  new CommandError('output', `${path} does not end with an exported entry. Choose another file.`)
