package main

import (
	"bytes"
	"fmt"
	"html"
	"slices"
	"strings"
)

// A picture is as wide as a phone, so that its text has a readable size there:
//
//	title
//	unit
//	■ redis-server   ■ ebb
//	label   ▇▇▇▇▇▇▇▇▇▇▇▇ 1.17
//	        ▇▇▇▇▇▇▇ 0.74
//
// Lengths are in pixels.
const (
	width     = 360
	margin    = 12
	barsAt    = 142 // where the bars begin
	barsWidth = 156 // the longest bar; right of it is room for a figure
	barHeight = 12
	barStep   = 15
	rowGap    = 10
	lineStep  = 18
)

// style has the colours for light and for dark pages. The last name of a picture, ebb, has the colour that stands out.
const style = `
text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 }
.unit, .figure { font-size: 12px; fill: #59636e }
.page { fill: #ffffff; stroke: #d1d9e0 }
.bar0 { fill: #8c959f } .bar1 { fill: #c69026 } .ebb { fill: #0969da }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.unit, .figure { fill: #9198a1 }
.page { fill: #0d1117; stroke: #3d444d }
.bar0 { fill: #767e89 } .bar1 { fill: #d29922 } .ebb { fill: #4493f8 }
}
`

// draw returns a picture as SVG.
func draw(p *picture) []byte {
	var body bytes.Buffer
	y := margin + 14
	text := func(class string, x int, s string) {
		fmt.Fprintf(&body, "<text class=%q x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(s))
	}
	text("title", margin, p.title)
	for _, line := range wrap(p.unit, 54) {
		y += lineStep
		text("unit", margin, line)
	}
	for i, name := range p.of {
		y += lineStep
		fmt.Fprintf(&body, "<rect class=%q x=\"%d\" y=\"%d\" width=\"12\" height=\"12\"/>\n", p.class(i), margin, y-11)
		text("name", margin+18, name)
	}
	y += lineStep
	longest := 0.0
	for _, r := range p.rows {
		longest = max(longest, slices.Max(r.values))
	}
	for _, r := range p.rows {
		if p.perRow {
			longest = slices.Max(r.values)
		}
		top := y
		y = top + (barStep*len(r.values)+9)/2
		text("label", margin, r.label)
		for i, v := range r.values {
			length := 0.0
			if longest > 0 {
				length = v / longest * barsWidth
			}
			at := top + i*barStep
			fmt.Fprintf(&body, "<rect class=%q x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"1\"/>\n",
				p.class(i), barsAt, at, length, barHeight)
			fmt.Fprintf(&body, "<text class=\"figure\" x=\"%.1f\" y=\"%d\">%s</text>\n",
				barsAt+length+5, at+10, html.EscapeString(r.figures[i]))
		}
		y = top + barStep*len(r.values) + rowGap
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img">`+"\n", width, y)
	fmt.Fprintf(&out, "<title>%s (%s)</title>\n<style>%s</style>\n", html.EscapeString(p.title), html.EscapeString(p.unit), style)
	fmt.Fprintf(&out, "<rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", width-1, y-1)
	out.Write(body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// class returns the class of the bars of the i-th name.
func (p *picture) class(i int) string {
	if i == len(p.of)-1 {
		return "ebb"
	}
	return fmt.Sprint("bar", i)
}

// wrap splits a text into lines of at most most bytes, at spaces.
func wrap(s string, most int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && len(line)+1+len(word) > most {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
