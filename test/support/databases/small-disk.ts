import { execFileSync } from 'node:child_process'
import { atEnd, type Test } from '../cleanup.ts'
import { createFolder } from './create.ts'

/** Undefined without the permission to mount. */
export function mountSmallDisk(t: Test, size: string): string | undefined {
  if (process.getuid?.() !== 0) return undefined
  const folder = createFolder(t)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder], { stdio: 'ignore' })
  } catch {
    return undefined
  }
  atEnd(t, () => execFileSync('umount', ['-l', folder]))
  return folder
}
