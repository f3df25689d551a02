// The long form of the suites in this folder: npm run test:hostile.
process.env.HOSTILE_FORM = 'long'
for (const suite of ['control-plane', 'edge', 'generated', 'new-connections.long'])
  await import(`./${suite}.test.ts`)
