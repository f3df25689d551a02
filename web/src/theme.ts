// Mantine theme: slate neutrals, teal as the primary color, and the amber of the logo as the accent.
import {
  alpha,
  Badge,
  type CSSVariablesResolver,
  createTheme,
  Input,
  type MantineColorsTuple,
  Menu,
  Modal,
  Paper,
  PasswordInput,
  SegmentedControl,
  Table,
} from '@mantine/core'

/** Ten shades, the lightest first. */
const shades = (list: string) => list.split(' ') as unknown as MantineColorsTuple

const slate = shades('#f6f7f9 #edf0f3 #e1e6eb #cdd5dd #a9b4c0 #7e8b9a #566272 #424d5b #2c3643 #1b2430')
const slateDark = shades('#dbe1e8 #c0c9d3 #b0bac6 #8a97a6 #3c4856 #2f3945 #242d38 #1b232d #141b23 #0e1319')
const teal = shades('#eaf5f6 #d5e9ec #aad2d8 #7dbbc4 #58a8b3 #3d98a5 #22808e #17697a #125766 #0d4451')
const amber = shades('#fdf6e7 #f9ebcb #f3d798 #edc362 #e8b04a #d99a2b #b9791a #946013 #744b10 #56380c')
const red = shades('#fdf0ef #fadcda #f4b9b5 #f0948e #f0837c #de5048 #cb3830 #b92d26 #9c231d #7d1a15')
const green = shades('#eef8f1 #d9f0e0 #b3e0c1 #89cf9f #66c083 #4fb771 #3aa35e #2c8a4c #1f7039 #17572c')

const FONTS = 'ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif'

export const theme = createTheme({
  colors: { gray: slate, dark: slateDark, teal, amber, red, green },
  black: '#1b2430',
  primaryColor: 'teal',
  primaryShade: { light: 7, dark: 6 },
  defaultRadius: 'md',
  fontFamily: FONTS,
  fontFamilyMonospace: 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, monospace',
  headings: { fontFamily: FONTS, fontWeight: '650' },
  respectReducedMotion: true,
  cursorType: 'pointer',
  components: {
    Badge: Badge.extend({ defaultProps: { variant: 'light', tt: 'none', radius: 'sm', miw: 'max-content' } }),
    InputWrapper: Input.Wrapper.extend({ defaultProps: { withAsterisk: false } }),
    PasswordInput: PasswordInput.extend({
      defaultProps: {
        visibilityToggleButtonProps: {
          'aria-label': 'Toggle password visibility',
          'aria-hidden': false,
          tabIndex: 0,
        },
      },
    }),
    Menu: Menu.extend({
      defaultProps: { shadow: 'md', position: 'bottom-end', withInitialFocusPlaceholder: false },
    }),
    Modal: Modal.extend({
      defaultProps: {
        centered: true,
        closeButtonProps: { 'aria-label': 'Close' },
        // A <header> element would be announced as a second page banner.
        attributes: { header: { role: 'presentation' } },
        overlayProps: { backgroundOpacity: 0.5 },
      },
      styles: { title: { fontSize: 'var(--mantine-font-size-lg)', fontWeight: 650 } },
    }),
    Paper: Paper.extend({ defaultProps: { withBorder: true } }),
    SegmentedControl: SegmentedControl.extend({
      defaultProps: { withItemsBorders: false },
      styles: { root: { border: '1px solid var(--adit-border)' } },
    }),
    Table: Table.extend({ defaultProps: { verticalSpacing: 'sm', horizontalSpacing: 'md' } }),
  },
})

/** Light variants of the dark scheme are translucent: Mantine's own are nearly black. */
const translucentVariants = (name: string, shades: MantineColorsTuple) => ({
  [`--mantine-color-${name}-light`]: alpha(shades[4], 0.16),
  [`--mantine-color-${name}-light-hover`]: alpha(shades[4], 0.24),
  [`--mantine-color-${name}-light-color`]: shades[3],
})

/** Mantine's default grays and reds have too little contrast for small text. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: { '--adit-slate': '#1b2430', '--adit-amber': '#e8b04a' },
  light: {
    '--mantine-color-dimmed': slate[6],
    '--mantine-color-placeholder': slate[6],
    '--mantine-color-error': red[7],
    '--mantine-color-green-text': green[8],
    '--mantine-color-default-border': slate[3],
    '--mantine-color-disabled-color': slate[6],
    '--adit-background': slate[0],
    '--adit-border': slate[2],
    '--adit-nav-active': amber[1],
    '--adit-chart-in': '#17697a',
    '--adit-chart-out': '#c07f16',
  },
  dark: {
    '--mantine-color-dimmed': slateDark[2],
    '--mantine-color-placeholder': slateDark[2],
    '--mantine-color-error': red[4],
    '--mantine-color-disabled-color': slateDark[2],
    '--adit-background': slateDark[8],
    '--adit-border': slateDark[5],
    '--adit-nav-active': 'rgba(232, 176, 74, 0.14)',
    ...translucentVariants('gray', slate),
    ...translucentVariants('amber', amber),
    ...translucentVariants('red', red),
    ...translucentVariants('green', green),
    ...translucentVariants('teal', teal),
    '--adit-chart-in': '#58a8b3',
    '--adit-chart-out': '#e8b04a',
  },
})
