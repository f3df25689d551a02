// Packs what was built and installs tarballs into empty projects.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { packAll } from '../../scripts/pack.ts'
import type { Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { npm } from '../support/processes/npm.ts'
import { root } from '../support/processes/process.ts'

export interface Project {
  readonly folder: string
  /** Writes a file of the project and returns its path. */
  write(name: string, text: string): string
}

/** Packs all packages. */
export function pack(t: Test) {
  const packed = packAll(createFolder(t))
  const findFile = (name: string) => packed.find((one) => one.name === name)?.file ?? ''
  const createProject = (): Project => {
    const folder = createFolder(t)
    const write = (file: string, text: string) => {
      writeFileSync(join(folder, file), text)
      return join(folder, file)
    }
    write('package.json', '{ "name": "project", "private": true, "type": "module" }')
    return { folder, write }
  }
  return {
    /** With npm, and options for it such as `--offline`. */
    install(names: string[], ...options: string[]): Project {
      const project = createProject()
      const args = [
        'install',
        ...names.map(findFile),
        '--no-audit',
        '--no-fund',
        '--loglevel=error',
        ...options,
      ]
      npm(args, project.folder)
      return project
    },
    /**
     * `adit` with links to the dependencies that its package.json declares, as npm installed them for this
     * repository. Installing them again would take a tenth of the CPU time of all tests.
     */
    link(): Project {
      const project = createProject()
      const modules = join(project.folder, 'node_modules')
      const adit = join(modules, 'adit')
      mkdirSync(join(modules, '.bin'), { recursive: true })
      mkdirSync(adit)
      execFileSync('tar', ['-xzf', findFile('adit'), '-C', adit, '--strip-components=1'])
      const manifest = JSON.parse(readFileSync(join(adit, 'package.json'), 'utf8'))
      for (const name of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })) {
        const installed = join(root, 'node_modules', name)
        if (!existsSync(installed)) continue
        mkdirSync(dirname(join(modules, name)), { recursive: true })
        symlinkSync(installed, join(modules, name))
      }
      symlinkSync(join(adit, manifest.bin.adit), join(modules, '.bin/adit'))
      symlinkSync(process.execPath, join(modules, '.bin/node'))
      return project
    },
  }
}
