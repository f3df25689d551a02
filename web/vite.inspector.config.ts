// Vite configuration of the inspector's page: builds web/src/inspector into web/dist/inspector, which
// `adit tunnel --inspect` serves.
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { buildOptions } from './vite.config.ts'

export default defineConfig({
  root: `${import.meta.dirname}/src/inspector`,
  base: './',
  plugins: [react()],
  build: { ...buildOptions, outDir: `${import.meta.dirname}/dist/inspector`, emptyOutDir: true },
})
