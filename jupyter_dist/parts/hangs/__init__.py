"""Why a cell cannot end: judged in the agent from what ranks report of themselves."""

# By which code names it. Verdicts on cells, and whether they were right, are kept by the core for all parts.
WORDS = ('"verdict"', "[.]verdict", "[{,] verdict(?= [}=&]|,)", "I?VerdictPart", "IVerdict", "models[.]Verdict")
