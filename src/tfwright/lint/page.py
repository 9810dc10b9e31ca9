"""The page of lint: findings with file, line and remedy."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfwright.terminal import text

if TYPE_CHECKING:
    from tfwright.lint.changes import PlannedRecipe, RecipeChange
    from tfwright.lint.recipes import LintFinding


def show_findings(recipes: Sequence[str], findings: "Sequence[LintFinding]") -> None:
    """Print each finding in two lines; a clean result says how many recipes were checked."""
    for finding in findings:
        # FILE:LINE: first, which editors and terminals make a link of.
        place = text.bold(f"{finding.file}:{finding.line}: ")
        rule = text.detail(f" [{finding.rule}]")
        text.line(place, finding.what, rule)
        label = "  note:" if finding.harmless else "  do:"
        text.paragraph(label, finding.remedy, indent=8)
    checked = text.counted(len(recipes), "recipe")
    serious = sum(not finding.harmless for finding in findings)
    if serious:
        text.tell(f"{text.counted(serious, 'finding')} in {checked}", text.BAD)
    else:
        text.tell(f"{checked} checked, nothing to correct", text.GOOD)


def show_review(
    change: "RecipeChange", plans: "Sequence[PlannedRecipe]", findings: "Sequence[LintFinding]"
) -> None:
    """Print what a change means: keys before and after, findings, plans, and what to run."""
    _show_change(change)
    for planned in plans:
        text.line(text.bold(f"plan of {planned.recipe}"))
        for label, stages in (("runs", planned.runs), ("keeps", planned.keeps)):
            if stages:
                text.paragraph(f"  {label}", ", ".join(stages), indent=9)
        if planned.stale:
            text.paragraph(text.warning("  [verified] is stale:"), planned.stale, indent=23)
        for hindrance in planned.hindered:
            text.paragraph(text.warning("  not here:"), hindrance, indent=13)
    if change.tests:
        text.line(text.bold("run next"))
    for command in change.tests:
        text.line(f"  {command}", whole=True)
    show_findings(change.recipes, findings)


def _show_change(change: "RecipeChange") -> None:
    if not change.files:
        text.tell("No recipe, patch or template differs.")
    for recipe in change.recipes:
        # Grouped by recipe: whoever reviews a change reviews recipe by recipe.
        keys = [key for key in change.keys if key.recipe == recipe]
        # Each recipe has a summary; of a new one, its file shows the keys.
        new = any(key.key == "summary" and not key.before for key in keys)
        text.line(text.bold(recipe), text.good("  (new)") if new else "")
        for key in () if new else keys:
            after = text.good(key.after or "(removed)")
            before = text.bad(key.before or "(new)")
            text.line(f"  {key.key}  ", before, " -> ", after)
    if change.files:
        text.line(text.bold("files"))
    for file in change.files:
        text.line(f"  {file}")
